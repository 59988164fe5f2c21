import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { judge } from './checker/check.ts';
import type { Violation } from './checker/verdict.ts';
import { type Field, openField, type Terms } from './field.ts';
import { blow, type Fallen } from './gale.ts';
import { type Healed, heal } from './heal.ts';
import { beOnCall, payMonths, prepare } from './operator.ts';
import { KINDS, planOf } from './plan.ts';

/** What a storm is made of. */
export interface StormOptions {
  readonly seed: number;
  readonly faults: number;
  readonly seconds: number;
  readonly isShort: boolean;
  /** Names of kinds; all of them where it is empty. */
  readonly only: readonly string[];
  readonly terms: Omit<Terms, 'seed'>;
  /** Keeps servers' data, logs and journal for whoever looks for the cause. */
  readonly keep: boolean;
  readonly tell: (sentence: string) => void;
}

/** What is written down about a storm. */
export interface Report {
  readonly seed: number;
  readonly commit: string;
  readonly folder: string;
  readonly faults: number;
  readonly kinds: Readonly<Record<string, { readonly fell: number; readonly hit: number }>>;
  /** Kinds that never hit anything: then this storm has not shown what it is for. */
  readonly neverHit: readonly string[];
  readonly missed: readonly string[];
  readonly typed: Readonly<Record<string, number>>;
  readonly checks: Readonly<Record<string, number>>;
  readonly violations: readonly Violation[];
  readonly secondsToConverge: number;
  readonly left: Healed['left'];
  readonly seconds: number;
}

const HEAL_WITHIN_MS = 240_000;

/** Starts everything anew, lets the faults of the seed fall while months are settled, heals, and judges. */
export async function runStorm(options: StormOptions): Promise<Report> {
  const began = performance.now();
  const root = join(import.meta.dirname, '../../..');
  const folder = mkdtempSync(join(tmpdir(), `onceper-storm-${options.seed}-`));
  // The database's user must get in when we are root.
  chmodSync(folder, 0o755);
  const field = await openField(root, folder, { seed: options.seed, ...options.terms });
  let report: Report;
  try {
    report = await storm(field, options, began, root);
  } finally {
    await field.stop();
  }
  if (!options.keep && report.violations.length === 0 && report.left === null)
    rmSync(folder, { recursive: true, force: true });
  return report;
}

async function storm(field: Field, options: StormOptions, began: number, root: string): Promise<Report> {
  const { seed, faults, only, isShort, tell } = options;
  await Promise.all([...Object.values(field.posts).map((post) => post.untilReady(60_000)), prepare(field)]);
  tell(`everything works after ${since(began)} s; the storm begins`);
  const ms = options.seconds * 1_000;
  const kinds = KINDS.filter((kind) =>
    only.length === 0 ? !isShort || kind.isShort === true : only.includes(kind.name),
  );
  const start = performance.now();
  let isOver = false;
  // Over a short storm nobody is called before it is over.
  const onCall = isShort ? Promise.resolve() : beOnCall(field, () => isOver);
  const gale = blow(field, planOf({ seed, faults, ms, kinds }), { began: start, isShort });
  const [fallen] = await Promise.all([gale.fallen, payMonths(field, { began: start, ms, restored: gale.restored })]);
  isOver = true;
  await onCall;
  tell(`${fallen.length} faults fell within ${since(start)} s; now everything is healed`);
  const healed = await heal(field, HEAL_WITHIN_MS);
  tell(
    healed.left === null
      ? `at rest after ${healed.seconds.toFixed(1)} s`
      : `not at rest: ${JSON.stringify(healed.left)}`,
  );
  await Promise.all(Object.values(field.posts).map((post) => post.end()));
  const { load, journal, lives, postgres } = field;
  const judgement = await judge({ ...load, journal, lives, databaseUrl: postgres.url });
  const counted = countKinds(
    kinds.map(({ name }) => name),
    fallen,
  );
  return {
    seed,
    commit: commitOf(root),
    folder: field.folder,
    faults: fallen.filter(({ hit }) => hit).length,
    kinds: counted,
    neverHit: Object.entries(counted).flatMap(([name, { hit }]) => (hit === 0 ? [name] : [])),
    missed: [...new Set(fallen.flatMap(({ kind, missed }) => (missed === null ? [] : [`${kind}: ${missed}`])))],
    typed: Object.fromEntries(field.people.typed),
    ...judgement,
    secondsToConverge: healed.seconds,
    left: healed.left,
    seconds: Number(since(began)),
  };
}

/** What was tried; a copy of the checkout that holds a planted bug is no commit. */
function commitOf(root: string): string {
  const { status, stdout } = spawnSync('git', ['-C', root, 'describe', '--always', '--dirty'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : 'no commit';
}

function countKinds(names: readonly string[], fallen: readonly Fallen[]): Report['kinds'] {
  return Object.fromEntries(
    names.map((name) => {
      const own = fallen.filter(({ kind }) => kind === name);
      return [name, { fell: own.length, hit: own.filter(({ hit }) => hit).length }];
    }),
  );
}

function since(from: number): string {
  return ((performance.now() - from) / 1_000).toFixed(0);
}
