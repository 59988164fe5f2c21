import { claim, close, endAttempt } from '../../activities/attempt.ts';
import { openStart } from '../../activities/open.ts';
import type { ActivityServices } from '../../activities/services.ts';
import { codeOf } from '../../src/kernel/error.ts';
import { leaseTimes } from '../../src/kernel/lease.ts';
import { renewLease } from '../../src/store/close.ts';
import { activeRule } from '../../src/store/rules.ts';
import { cancelAction, type Stopped, skipAction } from '../../src/store/stop.ts';
import { performOne } from '../support/ledger.ts';
import { waive } from '../support/waive.ts';
import type { ClaimCommand } from './claim-steps.ts';
import type { Command } from './commands.ts';
import type { EndCommand, Held } from './grant-steps.ts';
import { type Interruptions, NOMINAL_TIMES, periodName } from './model-job.ts';
import { keyName } from './observed.ts';
import type { OpenCommand } from './open-steps.ts';
import type { Answer } from './steps.ts';

const LEASE_MS = 600_000;

/** What a sequence's commands are carried out on: the activities and the store, with ways to interrupt them. */
export interface RealLedger {
  readonly job: string;
  readonly services: ActivityServices;
  readonly interruptions: Interruptions;
}

/** The message of what a crash throws, which no code of the product knows. */
export const CRASH = 'the process died here';

/** Carries a command out and says its answer in the model's words; an error is an answer by its code. */
export async function carryOut(ledger: RealLedger, command: Command): Promise<Answer> {
  try {
    return await ask(ledger, command);
  } catch (error) {
    if (error instanceof Error && error.message === CRASH) return { kind: 'crashed' };
    const code = codeOf(error);
    if (code === null) throw error;
    return { kind: 'error', code };
  }
}

async function ask(ledger: RealLedger, command: Command): Promise<Answer> {
  const { services, job } = ledger;
  const { db } = services;
  switch (command.kind) {
    case 'open':
      return askOpen(ledger, command);
    case 'claim':
      return askClaim(services, command);
    case 'slice':
      return { kind: (await performOne(services, grantOf(job, command.grant), command.slice, LEASE_MS)).kind };
    case 'renew': {
      const { key, fence } = grantOf(job, command.grant);
      return {
        kind: 'renewed',
        held: await renewLease(db, { key, fence: BigInt(fence), times: leaseTimes(LEASE_MS) }),
      };
    }
    case 'close': {
      const closed = await close(services, grantOf(job, command.grant));
      return closed.kind === 'slices_left' ? { kind: closed.kind, left: closed.left } : { kind: closed.kind };
    }
    case 'end':
      return askEnd(ledger, command);
    case 'cancel':
      return stopAnswer(
        await cancelAction(db, {
          key: keyName(job, command.period),
          actor: 'model',
          reason: 'no trade',
          lockTimeout: 30_000,
        }),
      );
    case 'skip':
      return stopAnswer(await skip(ledger, command.period));
    case 'expire':
      await db.query(`update onceper.action set lease_until = clock_timestamp() where key = $1 and state = 'running'`, [
        keyName(job, command.period),
      ]);
      return { kind: 'expired' };
    case 'release': {
      const { startId } = command;
      return { kind: 'released', signed: await waive(db, startId) };
    }
    case 'activate':
      await db.query(`update onceper.job set active_rule = 2 where job = $1`, [job]);
      return { kind: 'activated' };
    case 'refuse_seals':
      ledger.interruptions.refusesSeal = command.on;
      return { kind: 'told' };
  }
}

async function askOpen({ services, job }: RealLedger, command: OpenCommand): Promise<Answer> {
  const { startId, door, overrides } = command;
  const scheduledAt = NOMINAL_TIMES[command.period]?.[command.at] ?? null;
  const opened = await openStart(services, { startId, job, scheduledAt, door, actor: 'model', overrides });
  const { decision, code, owner } = opened;
  const hasResult = opened.result !== null && opened.result !== undefined;
  return { kind: 'opened', decision, code, owner, hasResult, asksAgain: opened.askAgainMs !== null };
}

async function askClaim(services: ActivityServices, command: ClaimCommand): Promise<Answer> {
  const claimed = await claim(services, { run: command.run, execution: command.exec, pass: command.pass });
  switch (claimed.kind) {
    case 'granted': {
      const { attempt, slices } = claimed;
      return { kind: 'granted', fence: Number(claimed.fence), attempt, slices };
    }
    case 'superseded':
      return { kind: 'superseded', pass: claimed.pass };
    case 'failed': {
      const { kind, spent } = claimed.next;
      return { kind: 'failed', code: claimed.code, next: kind, spent, waits: waits(claimed.next) };
    }
    case 'refused':
      return { kind: 'refused', code: claimed.code };
    case 'busy':
    case 'done':
      return { kind: claimed.kind };
  }
}

async function askEnd({ services, job }: RealLedger, command: EndCommand): Promise<Answer> {
  const { outcome, begun } = command;
  const code = outcome === 'failed' ? 'boom' : null;
  const next = await endAttempt(services, {
    ...grantOf(job, command.grant),
    outcome,
    code,
    detail: null,
    slicesBegun: begun,
  });
  if (next.kind === 'moved_on') return { kind: next.kind };
  return { kind: next.kind, spent: next.spent, waits: waits(next) };
}

const waits = (next: { kind: string; afterMs?: number }) => next.kind === 'again' && (next.afterMs ?? 0) > 0;

async function skip({ services, job }: RealLedger, period: number): Promise<Stopped> {
  const { db, release } = services;
  const ruleVersion = (await activeRule(db, job))?.version ?? 0;
  const key = keyName(job, period);
  const about = { key, job, period: periodName(period), actor: 'model', reason: 'no trade', ruleVersion, release };
  return skipAction(db, about, () => Promise.resolve());
}

function stopAnswer(stopped: Stopped): Answer {
  return { ...stopped };
}

function grantOf(job: string, grant: Held): { key: string; fence: string } {
  return { key: keyName(job, grant.period), fence: String(grant.fence) };
}
