import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import type { Database } from '../../src/store/database.ts';
import { servicesFor } from '../support/ledger.ts';
import { type Mishaps, withMishaps } from '../support/pausing.ts';
import { type Command, commandOf, type Draft, type Entry, stepsOf } from './commands.ts';
import type { Held } from './grant-steps.ts';
import { brokenInvariants } from './invariants.ts';
import { type Model, newModel, runOf, type World } from './ledger-model.ts';
import { createModelJob, type Interruptions, storeModelJob } from './model-job.ts';
import { type Observed, observe, projected } from './observed.ts';
import { CRASH, carryOut, type RealLedger } from './real-ledger.ts';
import { type Answer, finish, interleavings, runTo } from './steps.ts';

/** What sequences came across, by name: a model that never meets a takeover proves nothing about one. */
export type Met = Map<string, number>;

interface Sequence {
  model: Model;
  readonly real: RealLedger;
  readonly mishaps: Mishaps;
  readonly db: Database;
  readonly startIds: readonly string[];
  readonly grants: Held[];
  readonly met: Met;
  readonly trace: string[];
  seen: Observed;
}

/**
 * Carries one sequence out on the model and on PostgreSQL, and after every entry compares the answers and everything that
 * can be observed. Throws with the commands so far where they differ.
 */
export async function runSequence(
  on: { db: Database; met: Met },
  job: string,
  world: World,
  entries: readonly Entry[],
): Promise<void> {
  await storeModelJob(on.db, job, world);
  const interruptions: Interruptions = { seal: null, close: null, perform: null, refusesSeal: false };
  const mishaps: Mishaps = { beforeTransaction: null, losesCommitAnswer: false };
  const services = servicesFor(withMishaps(on.db, mishaps), [createModelJob(job, world, interruptions)]);
  const model = newModel(world);
  const sequence: Sequence = {
    model,
    real: { job, services, interruptions },
    mishaps,
    db: on.db,
    startIds: [0, 1, 2, 3].map((at) => `${job}-s${at}`),
    grants: [],
    met: on.met,
    trace: [],
    seen: projected(model, job),
  };
  try {
    for (const entry of entries) await runEntry(sequence, entry);
  } catch (error) {
    const differs = error instanceof Error ? error.message : String(error);
    const lines = [`world ${JSON.stringify(world)}`, ...sequence.trace];
    throw new Error(`${differs}\nafter:\n${lines.join('\n')}`, { cause: error });
  }
}

async function runEntry(sequence: Sequence, entry: Entry): Promise<void> {
  switch (entry.kind) {
    case 'alone': {
      const command = resolve(sequence, entry.draft);
      if (command === null) return;
      if (entry.mishap === null) await alone(sequence, command);
      else if (entry.mishap === 'crash') await crashing(sequence, command);
      else await losingTheAnswer(sequence, command);
      break;
    }
    case 'at_once': {
      const [first, second] = entry.drafts.map((draft) => resolve(sequence, draft));
      if (!first || !second) return;
      await atOnce(sequence, [first, second]);
      return;
    }
    case 'within': {
      const outer = resolve(sequence, entry.outer);
      if (outer === null) return;
      await within(sequence, outer, entry.place, entry.inner);
      break;
    }
  }
  await compareState(sequence);
}

async function alone(sequence: Sequence, command: Command): Promise<void> {
  const expected = finish(stepsOf(sequence.model, command));
  compareAnswer(sequence, command, expected, await carryOut(sequence.real, command));
}

/** The process dies at the first of the job's steps that the command comes to. */
async function crashing(sequence: Sequence, command: Command): Promise<void> {
  const { interruptions } = sequence.real;
  const die = () => Promise.reject(new Error(CRASH));
  Object.assign(interruptions, { seal: die, close: die, perform: die });
  const expected = finish(stepsOf(sequence.model, command), true);
  const answer = await carryOut(sequence.real, command);
  Object.assign(interruptions, { seal: null, close: null, perform: null });
  compareAnswer(sequence, command, expected, answer, 'crash');
}

/** The work is committed and nobody hears of it: a grant and a close are read again, the others are asked again. */
async function losingTheAnswer(sequence: Sequence, command: Command): Promise<void> {
  sequence.mishaps.losesCommitAnswer = true;
  const expected = finish(stepsOf(sequence.model, command));
  const answer = await carryOut(sequence.real, command);
  const lost = !sequence.mishaps.losesCommitAnswer;
  sequence.mishaps.losesCommitAnswer = false;
  const rereads = command.kind === 'close' || (command.kind === 'claim' && expected['kind'] !== 'failed');
  const said = lost && !rereads ? { kind: 'error', code: 'commit_unknown' } : expected;
  compareAnswer(sequence, command, said, answer, 'commit answer lost');
  await compareState(sequence);
  await alone(sequence, command);
}

/** The outer command is held up at a place, the inner ones go on there; where it never comes there they follow it. */
async function within(
  sequence: Sequence,
  outer: Command,
  place: 'gate' | 'seal' | 'close',
  inner: readonly Draft[],
): Promise<void> {
  const { real, mishaps } = sequence;
  const steps = stepsOf(sequence.model, outer);
  const early = runTo(steps, place);
  let reached = false;
  let differs: unknown = null;
  const interruption = async () => {
    reached = true;
    try {
      for (const draft of inner) {
        const command = resolve(sequence, draft);
        if (command !== null) await alone(sequence, command);
      }
    } catch (error) {
      differs = error;
    }
  };
  if (place === 'gate') mishaps.beforeTransaction = interruption;
  else real.interruptions[place] = interruption;
  sequence.trace.push(`within ${JSON.stringify(outer)} at ${place}:`);
  const answer = await carryOut(real, outer);
  mishaps.beforeTransaction = null;
  Object.assign(real.interruptions, { seal: null, close: null });
  if (differs !== null) throw differs;
  expect(reached, `${outer.kind} comes to its ${place}`).toBe(early === null);
  compareAnswer(sequence, outer, early ?? finish(steps), answer, `end of what was held up at ${place}`);
}

async function atOnce(sequence: Sequence, commands: readonly [Command, Command]): Promise<void> {
  const answers = await Promise.all(commands.map((command) => carryOut(sequence.real, command)));
  const observed = await observe(sequence.db.pool, sequence.real.job, sequence.startIds);
  sequence.trace.push(`at once ${JSON.stringify(commands)} → ${JSON.stringify(answers)}`);
  let nearest: Observed | null = null;
  const begin = commands.map((command) => (model: Model) => stepsOf(model, command));
  for (const outcome of interleavings(sequence.model, begin)) {
    const expected = projected(outcome.model, sequence.real.job);
    nearest ??= expected;
    if (!isDeepStrictEqual(outcome.answers, answers) || !isDeepStrictEqual(expected, observed)) continue;
    sequence.model = outcome.model;
    for (const [at, command] of commands.entries()) take(sequence, command, answers[at] ?? {});
    look(sequence, observed);
    return;
  }
  expect({ answers, ...observed }, 'no interleaving of the two gives this; beside it, one after the other').toEqual(
    nearest,
  );
}

function resolve(sequence: Sequence, draft: Draft): Command | null {
  return commandOf(draft, sequence.model, sequence);
}

function compareAnswer(sequence: Sequence, command: Command, expected: Answer, answer: Answer, note = ''): void {
  sequence.trace.push(`${note === '' ? '' : `(${note}) `}${JSON.stringify(command)} → ${JSON.stringify(answer)}`);
  if (!isDeepStrictEqual(answer, expected))
    expect(answer, `the answer to ${JSON.stringify(command)}`).toEqual(expected);
  take(sequence, command, answer);
}

/** Remembers a grant for its holder, and what was met. */
function take(sequence: Sequence, command: Command, answer: Answer): void {
  const { met, model, grants } = sequence;
  const kind = `${command.kind} ${String(answer['decision'] ?? answer['kind'])}`;
  met.set(kind, (met.get(kind) ?? 0) + 1);
  if (command.kind !== 'claim' || answer['kind'] !== 'granted') return;
  const grant = { period: runOf(model, command.run)?.period ?? 0, fence: Number(answer['fence']) };
  if (!grants.some((other) => isDeepStrictEqual(other, grant))) grants.push(grant);
}

async function compareState(sequence: Sequence): Promise<void> {
  const observed = await observe(sequence.db.pool, sequence.real.job, sequence.startIds);
  look(sequence, observed);
  const expected = projected(sequence.model, sequence.real.job);
  if (!isDeepStrictEqual(observed, expected)) expect(observed, 'what the database shows').toEqual(expected);
}

function look(sequence: Sequence, observed: Observed): void {
  const broken = brokenInvariants(sequence.seen, observed);
  if (broken.length > 0) throw new Error(broken.join('; '));
  sequence.seen = observed;
}
