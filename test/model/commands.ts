import fc from 'fast-check';
import { type ClaimCommand, claimSteps } from './claim-steps.ts';
import {
  type CloseCommand,
  closeSteps,
  type EndCommand,
  endSteps,
  type Held,
  type RenewCommand,
  renewSteps,
  type SliceCommand,
  sliceSteps,
} from './grant-steps.ts';
import { type Model, PERIODS, type World } from './ledger-model.ts';
import { type OpenCommand, openSteps } from './open-steps.ts';
import type { Steps } from './steps.ts';
import { type StopCommand, stopSteps } from './stop-steps.ts';

/** One thing that somebody does to the ledger. */
export type Command =
  | OpenCommand
  | ClaimCommand
  | SliceCommand
  | RenewCommand
  | CloseCommand
  | EndCommand
  | StopCommand;

export function stepsOf(model: Model, command: Command): Steps {
  switch (command.kind) {
    case 'open':
      return openSteps(model, command);
    case 'claim':
      return claimSteps(model, command);
    case 'slice':
      return sliceSteps(model, command);
    case 'renew':
      return renewSteps(model, command);
    case 'close':
      return closeSteps(model, command);
    case 'end':
      return endSteps(model, command);
    case 'cancel':
    case 'skip':
    case 'expire':
    case 'release':
    case 'activate':
    case 'refuse_seals':
      return stopSteps(model, command);
  }
}

/**
 * A command as fast-check makes it: numbers only, which name runs and grants once it is known what there is, so that every
 * part of a sequence can be left out when a failing one is shrunk.
 */
export interface Draft {
  readonly kind: Command['kind'] | 'owner_claims';
  readonly period: number;
  readonly start: number;
  /** Which grant, counted back from the newest. */
  readonly back: number;
  readonly pick: number;
}

/** One entry of a sequence: a command alone, two at once, or some within another that is held up in its middle. */
export type Entry =
  | { readonly kind: 'alone'; readonly draft: Draft; readonly mishap: 'crash' | 'commit_answer_lost' | null }
  | { readonly kind: 'at_once'; readonly drafts: readonly [Draft, Draft] }
  | {
      readonly kind: 'within';
      readonly outer: Draft;
      readonly place: 'gate' | 'seal' | 'close';
      readonly inner: readonly Draft[];
    };

/** What a draft may refer to. */
export interface Known {
  readonly startIds: readonly string[];
  readonly grants: readonly Held[];
}

/** The command that a draft stands for now, or null where it names a grant and none was ever given. */
export function commandOf(draft: Draft, model: Model, known: Known): Command | null {
  const { period, pick } = draft;
  const startId = known.startIds[draft.start % known.startIds.length] ?? '';
  const grant = known.grants.at(-1 - (draft.back % Math.max(1, known.grants.length)));
  switch (draft.kind) {
    case 'open':
      return {
        kind: 'open',
        startId,
        period,
        door: DOORS[pick % 3] ?? 'run',
        at: pick % 4 === 3 ? 1 : 0,
        overrides: stated(pick),
      };
    case 'owner_claims': {
      const action = model.keys[period]?.action;
      const exec = pick % 4 === 3 ? 'e2' : (action?.exec ?? 'e1');
      const highest = Math.max(0, ...(model.keys[period]?.attempts ?? []).map((one) => one.pass));
      return { kind: 'claim', run: action?.owner ?? startId, exec, pass: highest + 1 };
    }
    case 'claim':
      return { kind: 'claim', run: startId, exec: pick % 3 === 2 ? 'e2' : 'e1', pass: 1 + (pick % 4) };
    case 'slice': {
      const { slices } = model.world;
      return grant === undefined || slices === 0 ? null : { kind: 'slice', grant, slice: pick % slices };
    }
    case 'renew':
    case 'close':
      return grant === undefined ? null : { kind: draft.kind, grant };
    case 'end':
      return grant === undefined
        ? null
        : { kind: 'end', grant, outcome: OUTCOMES[pick % 4] ?? 'failed', begun: pick % 3 };
    case 'cancel':
    case 'skip':
    case 'expire':
      return { kind: draft.kind, period };
    case 'release':
      return { kind: 'release', startId };
    case 'activate':
      return { kind: 'activate' };
    case 'refuse_seals':
      return { kind: 'refuse_seals', on: pick % 2 === 0 };
  }
}

const DOORS = ['schedule', 'run', 'backfill'] as const;
const OUTCOMES = ['failed', 'worker_lost', 'shutdown', 'lease_lost'] as const;

function stated(pick: number): Readonly<Record<string, string>> {
  const choices = [{}, {}, {}, { color: 'red' }, { color: 'blue' }, { empty: 'true' }];
  return choices[pick % choices.length] ?? {};
}

/** How often each command is tried, of all commands together. */
const WEIGHTS: readonly (readonly [Draft['kind'], number])[] = [
  ['open', 12],
  ['owner_claims', 14],
  ['claim', 6],
  ['slice', 26],
  ['renew', 3],
  ['close', 9],
  ['end', 8],
  ['expire', 7],
  ['cancel', 4],
  ['skip', 2],
  ['release', 5],
  ['activate', 2],
  ['refuse_seals', 2],
];

function draftOf(kinds: readonly (readonly [Draft['kind'], number])[]): fc.Arbitrary<Draft> {
  return fc.record({
    kind: fc.oneof(...kinds.map(([kind, weight]) => ({ weight, arbitrary: fc.constant(kind) }))),
    period: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(PERIODS - 1) }),
    start: fc.nat(3),
    back: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(3) }),
    pick: fc.nat(23),
  });
}

const anyDraft = draftOf(WEIGHTS);
const PAUSED = new Set<Draft['kind']>(['open', 'owner_claims', 'claim', 'close', 'end', 'cancel', 'skip']);
const pausedDraft = draftOf(WEIGHTS.filter(([kind]) => PAUSED.has(kind)));

const entry: fc.Arbitrary<Entry> = fc.oneof(
  {
    weight: 14,
    arbitrary: fc.record({ kind: fc.constant('alone' as const), draft: anyDraft, mishap: fc.constant(null) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('alone' as const),
      draft: draftOf(WEIGHTS.filter(([kind]) => ['owner_claims', 'slice', 'close', 'end'].includes(kind))),
      mishap: fc.constantFrom('crash' as const, 'commit_answer_lost' as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('at_once' as const), drafts: fc.tuple(anyDraft, anyDraft) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('within' as const),
      outer: pausedDraft,
      place: fc.constantFrom('gate' as const, 'gate' as const, 'seal' as const, 'close' as const),
      inner: fc.array(anyDraft, { minLength: 1, maxLength: 3 }),
    }),
  },
);

export const anyWorld: fc.Arbitrary<World> = fc.record({
  slices: fc.oneof({ weight: 5, arbitrary: fc.integer({ min: 1, max: 2 }) }, { weight: 1, arbitrary: fc.constant(0) }),
  budgets: fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 3 })),
  needsPrevious: fc.boolean(),
  runsInFlight: fc.constantFrom(null, null, 1, 2),
  late: fc.oneof({ weight: 7, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  inspection: fc.oneof(
    { weight: 7, arbitrary: fc.constant('ready' as const) },
    { weight: 1, arbitrary: fc.constant('empty' as const) },
    { weight: 1, arbitrary: fc.constant('no_fee_rule' as const) },
  ),
});

/** Nearly everything begins with an admission and a grant, so most sequences try both before anything else. */
const begun: fc.Arbitrary<readonly Entry[]> = fc.oneof(
  { weight: 5, arbitrary: inOrder('open', 'owner_claims') },
  { weight: 2, arbitrary: inOrder('open') },
  { weight: 1, arbitrary: inOrder('open', 'refuse_seals', 'owner_claims') },
);

function inOrder(...kinds: readonly Draft['kind'][]): fc.Arbitrary<readonly Entry[]> {
  const alone = (draft: Draft): Entry => ({ kind: 'alone', draft: { ...draft, period: 0 }, mishap: null });
  return fc.tuple(...kinds.map((kind) => draftOf([[kind, 1]]))).map((drafts) => drafts.map(alone));
}

/** Sequences of at most `longest` entries after what they begin with. */
export function anySequence(longest: number): fc.Arbitrary<readonly Entry[]> {
  return fc
    .tuple(begun, fc.array(entry, { minLength: 2, maxLength: longest, size: 'max' }))
    .map(([first, rest]) => [...first, ...rest]);
}
