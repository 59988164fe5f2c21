import { Draw } from '../../../src/jobs/settlement/sample/draw.ts';
import type { Lane } from './faults/fault.ts';
import type { Field } from './field.ts';
import { pause } from './pause.ts';
import type { Planned } from './plan.ts';

/** What became of one fault. */
export interface Fallen {
  readonly kind: string;
  readonly hit: boolean;
  /** Why it hit nothing, where an error said so: another fault had its server down at that moment. */
  readonly missed: string | null;
}

/** A storm that blows. */
export interface Gale {
  /** When the last restore is over: what people do from then on is not lost. */
  readonly restored: Promise<void>;
  readonly fallen: Promise<readonly Fallen[]>;
}

/** Lets the faults fall at their instants, each lane in its order. */
export function blow(
  field: Field,
  plan: readonly Planned[],
  of: { readonly began: number; readonly isShort: boolean },
): Gale {
  const fallen: Fallen[] = [];
  const lanes = new Map<Lane, Promise<void>>();
  const all = plan.map((planned) => {
    const isEarly = planned.kind.when === 'early';
    const after = Promise.all([lanes.get(planned.lane), pauseUntil(of.began + planned.atMs)]);
    const one = after.then(async () => {
      if (planned.kind.when === 'late') await restored;
      fallen.push(await strike(field, planned));
    });
    lanes.set(planned.lane, one);
    return { isEarly, one };
  });
  const restored = Promise.all(all.flatMap(({ isEarly, one }) => (isEarly ? [one] : []))).then(() => undefined);
  const ended = Promise.all(all.map(({ one }) => one)).then(async () => {
    for (const again of of.isShort ? [] : missedKinds(plan, fallen)) await strikeAgain(field, again, fallen);
    return fallen;
  });
  return { restored, fallen: ended };
}

/** A kind whose every fault met another one has shown nothing yet; a restore comes no more, since it would lose what people did. */
function missedKinds(plan: readonly Planned[], fallen: readonly Fallen[]): readonly Planned[] {
  const hit = new Set(fallen.flatMap((one) => (one.hit ? [one.kind] : [])));
  const missed = plan.filter(({ kind }) => !hit.has(kind.name) && kind.when !== 'early');
  return [...new Map(missed.map((planned) => [planned.kind.name, planned])).values()];
}

const TRIES = 3;

async function strikeAgain(field: Field, planned: Planned, fallen: Fallen[]): Promise<void> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const one = await strike(field, { ...planned, seed: planned.seed + tries + 1 });
    fallen.push(one);
    if (one.hit) return;
    await pause(300);
  }
}

function pauseUntil(instant: number): Promise<void> {
  return pause(Math.max(0, instant - performance.now()));
}

/** Lanes whose faults need a database that is up. */
const ASK_THE_DATABASE: ReadonlySet<Lane> = new Set(['sessions', 'requests', 'people']);

/** Lanes whose faults are told to the counterparty: to one that has just been killed they would say nothing. */
const TELL_THE_COUNTERPARTY: ReadonlySet<Lane> = new Set(['weather', 'webhooks']);

/** Errors of a fault that met another one: the server was away, its connection was cut, a lock was not to be had. */
const OF_OTHERS =
  /ECONN|EPIPE|socket|terminat|timeout|time-out|starting up|shutting down|recovery|read-only|too many clients|remaining connection|connection|UNAVAILABLE|DEADLINE|deadline|lock|not found|fetch failed|hang up|Failed to connect/i;

async function strike(field: Field, { kind, lane, seed }: Planned): Promise<Fallen> {
  const at = new Date().toISOString();
  let fallen: Fallen;
  try {
    if (ASK_THE_DATABASE.has(lane)) await field.postgres.untilUp();
    if (TELL_THE_COUNTERPARTY.has(lane)) await field.posts.gateway.untilReady(60_000);
    fallen = { kind: kind.name, hit: await kind.strike(field, new Draw(seed), lane), missed: null };
  } catch (error) {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    if (!OF_OTHERS.test(text)) throw error;
    fallen = { kind: kind.name, hit: false, missed: text };
  }
  field.note({ at, ended: new Date().toISOString(), lane, ...fallen });
  return fallen;
}
