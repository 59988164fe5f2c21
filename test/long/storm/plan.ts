import { Draw } from '../../../src/jobs/settlement/sample/draw.ts';
import type { Kind, Lane } from './faults/fault.ts';
import { OUTSIDE_FAULTS } from './faults/outside.ts';
import { PEOPLE_FAULTS } from './faults/people.ts';
import { PROCESS_FAULTS } from './faults/processes.ts';
import { SERVER_FAULTS } from './faults/servers.ts';
import { SESSION_FAULTS } from './faults/sessions.ts';

/** Every kind of fault that there is. */
export const KINDS: readonly Kind[] = [
  ...PROCESS_FAULTS,
  ...SERVER_FAULTS,
  ...SESSION_FAULTS,
  ...OUTSIDE_FAULTS,
  ...PEOPLE_FAULTS,
];

/** One fault of the schedule; `seed` is what its own draws are made from. */
export interface Planned {
  readonly kind: Kind;
  readonly lane: Lane;
  readonly atMs: number;
  readonly seed: number;
}

/** Restores end here, and acts of people that one would lose begin, as shares of the storm's time. */
const EARLY_UNTIL = 70;
export const LATE_FROM = 75;
/** Each kind falls so often at least, so that one which misses now and then still hits. */
const LEAST = 2;

/** The schedule of a seed: the same kinds at the same instants, each with the same draws, on every machine. */
export function planOf(of: {
  readonly seed: number;
  readonly faults: number;
  readonly ms: number;
  readonly kinds: readonly Kind[];
}): readonly Planned[] {
  const draw = new Draw(20_261_203, of.seed);
  const least = Math.max(1, Math.min(LEAST, Math.floor(of.faults / of.kinds.length)));
  const chosen = of.kinds.flatMap((kind) => Array.from({ length: least }, () => kind));
  const total = of.kinds.reduce((sum, { weight }) => sum + weight, 0);
  while (chosen.length < of.faults) {
    let place = draw.between(1, total);
    const kind = of.kinds.find(({ weight }) => (place -= weight) <= 0);
    if (kind !== undefined) chosen.push(kind);
  }
  const planned = chosen.map((kind) => {
    const [from, to] =
      kind.when === 'early' ? [25, EARLY_UNTIL] : kind.when === 'late' ? [LATE_FROM + 2, 100] : [0, 100];
    const atMs = (draw.between(from * 1_000, to * 1_000) * of.ms) / 100_000;
    const lane = kind.lanes[draw.between(0, kind.lanes.length - 1)] ?? 'people';
    return { kind, lane, atMs, seed: draw.between(1, 1e9) };
  });
  return planned.toSorted((one, other) => one.atMs - other.atMs);
}
