import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { codeOf } from '../src/kernel/error.ts';
import * as attempt from './attempt.ts';
import { advance, type BackfillOutput } from './backfill.ts';
import { type DeliveryOutput, deliveryState } from './delivery.ts';
import { judgeRefusedStart, type Looked, look } from './epoch.ts';
import { type ExpectedOutput, expected } from './expected.ts';
import * as opening from './open.ts';
import { type PerformInput, type PerformOutput, perform } from './perform.ts';
import { createRenewer } from './renewer.ts';
import type { ActivityServices } from './services.ts';

/** What workflows may call. Arguments and results are ids, counts and stored results: rows stay in PostgreSQL. */
export interface Activities {
  open(input: opening.OpenInput): Promise<opening.OpenOutput>;
  claim(input: attempt.ClaimInput): Promise<attempt.ClaimOutput>;
  perform(input: PerformInput): Promise<PerformOutput>;
  close(input: attempt.GrantInput): Promise<attempt.CloseOutput>;
  endAttempt(input: attempt.EndInput): Promise<attempt.EndOutput>;
  expected(): Promise<ExpectedOutput>;
  look(remembered: Looked | null): Promise<Looked>;
  deliveryState(key: string): Promise<DeliveryOutput>;
  advance(id: string): Promise<BackfillOutput>;
  judgeRefusedStart(start: { readonly key: string; readonly run: string }): Promise<'rewound' | 'benign'>;
}

/**
 * Makes the activities over their services. Whatever one of them throws leaves as an ApplicationFailure whose type is the
 * error's stable code, since no class survives Temporal; only `open` and look-ups are retried, by the workflow's options.
 */
export function createActivities(services: ActivityServices): Activities {
  const renewer = createRenewer(services.renewals, services.log);
  const coded =
    <Input, Output>(step: string, run: (input: Input) => Promise<Output>) =>
    async (input: Input): Promise<Output> => {
      try {
        return await run(input);
      } catch (error) {
        throw failureOf(services, step, error);
      }
    };
  return {
    open: coded('open', (input: opening.OpenInput) => opening.open(services, input)),
    claim: coded('claim', (input: attempt.ClaimInput) => beating(() => attempt.claim(services, input))),
    perform: coded('perform', (input: PerformInput) => beating(() => perform(services, renewer, input))),
    close: coded('close', (input: attempt.GrantInput) => beating(() => attempt.close(services, input))),
    endAttempt: coded('endAttempt', (input: attempt.EndInput) => attempt.endAttempt(services, input)),
    expected: () => coded('expected', () => expected(services))(null),
    advance: coded('advance', (id: string) => advance(services, id)),
    deliveryState: coded('deliveryState', (key: string) => deliveryState(services, key)),
    look: coded('look', (remembered: Looked | null) => look(services, remembered)),
    judgeRefusedStart: coded('judgeRefusedStart', (start: { key: string; run: string }) =>
      judgeRefusedStart(services, start),
    ),
  };
}

/** A quarter of the heartbeat time-out (workflows/options.ts), so that three beats may be lost. */
const BEAT_MS = 750;

/** Heartbeats on a timer of their own say only that the process lives: progress is in the ledger. */
async function beating<Output>(run: () => Promise<Output>): Promise<Output> {
  const activity = Context.current();
  const beat = setInterval(() => activity.heartbeat(), BEAT_MS);
  try {
    return await run();
  } finally {
    clearInterval(beat);
  }
}

function failureOf(services: ActivityServices, step: string, error: unknown): ApplicationFailure {
  if (error instanceof ApplicationFailure) return error;
  const code = codeOf(error) ?? 'unexpected';
  const message = error instanceof Error ? error.message : String(error);
  services.log({ event: 'activity_failed', step, code, message });
  return ApplicationFailure.create({ type: code, message, nonRetryable: PERMANENT.has(code) });
}

/** Trying these again can't change the answer: a person must change something first. */
const PERMANENT: ReadonlySet<string> = new Set([
  'no_action',
  'unknown_job',
  'rule_missing',
  'malformed_rule',
  'malformed_key',
  'slice_plan',
  'unknown_backfill',
  'unexpected',
]);
