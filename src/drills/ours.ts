import { randomUUID } from 'node:crypto';
import { type ClaimOutput, type CloseOutput, claim, close, grantOf } from '../../activities/attempt.ts';
import { contextOf } from '../../activities/job-context.ts';
import { type OpenOutput, openStart } from '../../activities/open.ts';
import type { ActivityServices } from '../../activities/services.ts';
import type { Gateway } from '../gateway/port.ts';
import { nominalTimeOf } from '../jobs/occasion.ts';
import { parseRule } from '../jobs/rule.ts';
import { anchorOf } from '../ops/audit/anchors.ts';
import type { RelayEvent } from '../relay/events.ts';
import { relayOnce } from '../relay/relay.ts';
import { actionByKey } from '../store/actions.ts';
import { activeRule } from '../store/rules.ts';
import { performSlice, type SliceOutcome } from '../store/slices.ts';
import type { SampleMonths } from './sample-month.ts';
import type { Stage } from './stage.ts';
import { until } from './until.ts';

/** A grant as a worker holds it. */
export type Granted = Extract<ClaimOutput, { kind: 'granted' }>;

/** The product's own steps in this process, without Temporal: what is compared is the ledger, not who drives it. */
export interface Ours {
  open(): Promise<OpenOutput>;
  /** Asks for the run's next attempt as another execution of its workflow. */
  claim(run: string): Promise<ClaimOutput>;
  perform(grant: Granted, slices: readonly number[]): Promise<readonly SliceOutcome['kind'][]>;
  close(grant: Granted): Promise<CloseOutput['kind']>;
  /** Relays through this gateway until every effect has a fate. */
  deliver(gateway: Gateway): Promise<void>;
  /** One batch through this gateway, its lease as short as the gateway's time-out allows. */
  relay(gateway: Gateway, onEvent?: (event: RelayEvent) => void): Promise<void>;
}

/** The steps over a stage's database and the sample that was imported into it. */
export function oursOn(stage: Pick<Stage, 'db' | 'actor'>, sample: SampleMonths): Ours {
  const { db } = stage;
  const services: ActivityServices = {
    db,
    renewals: db,
    registry: sample.registry,
    release: 'drill',
    log: () => undefined,
    statusOfWorkflow: () => Promise.resolve(null),
    scheduleState: () => Promise.resolve('missing'),
    topUpSchedule: () => Promise.resolve('none'),
    askForLook: () => Promise.resolve(),
    anchor: (head) => anchorOf(head, null),
    draining: new AbortController().signal,
  };
  const ours: Ours = {
    async open() {
      const stored = await activeRule(db, 'settlement');
      const scheduledAt = nominalTimeOf(parseRule(stored?.body, 'the drill'), sample.last);
      const asked = { startId: randomUUID(), job: 'settlement', scheduledAt, door: 'run', actor: stage.actor } as const;
      return openStart(services, { ...asked, overrides: {} });
    },
    claim: (run) => claim(services, { run, execution: randomUUID(), pass: 1 }),
    async perform(grant, slices) {
      const { job, contextUnder } = await contextOf(db, sample.registry, grant.key);
      const context = contextUnder(BigInt(grant.fence));
      const held = grantOf(grant, context.rule.leaseSeconds);
      const outcomes: SliceOutcome['kind'][] = [];
      for (const slice of slices) {
        outcomes.push((await performSlice(db, held, slice, (tx, range) => job.perform(tx, context, range))).kind);
      }
      return outcomes;
    },
    close: async (grant) => (await close(services, grant)).kind,
    async deliver(gateway) {
      await until('every payout of ours', () => deliveredBy(ours, stage, sample, gateway), 60_000);
    },
    async relay(gateway, onEvent) {
      const events = onEvent === undefined ? {} : { onEvent };
      await relayOnce({ db, jobs: sample.registry, gateway }, { leaseMs: 1, backOff: { baseMs: 50 }, ...events });
    },
  };
  return ours;
}

async function deliveredBy(
  ours: Ours,
  stage: Pick<Stage, 'db'>,
  { key }: SampleMonths,
  gateway: Gateway,
): Promise<boolean> {
  await ours.relay(gateway);
  const action = await actionByKey(stage.db, key);
  return action?.state === 'done' && !action.delivering;
}

/** Insists on a grant; anything else is a fault of the drill's stage. */
export function mustBeGranted(claimed: ClaimOutput): Granted {
  if (claimed.kind !== 'granted') throw new Error(`the claim was answered ${claimed.kind}`);
  return claimed;
}
