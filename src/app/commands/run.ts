import type { Client } from '@temporalio/client';
import { Option } from 'commander';
import { kindOfWaiting } from '../../ops/approval/held-run.ts';
import { localClock } from '../../ops/both-clocks.ts';
import { lastPoll, planRun, startRun, type When } from '../../ops/run.ts';
import { isSettled, type RunReport, watchRun } from '../../ops/run-report.ts';
import type { Database } from '../../store/database.ts';
import { askFor } from '../approval-request.ts';
import { type AddCommand, command } from '../command.ts';
import { type ExitCode, exitCodeOfRun } from '../exit-codes.ts';
import { usage } from '../fault.ts';
import { duration, overridePair } from '../options.ts';
import { renderRun, sentenceOf } from '../run-text.ts';
import type { Session } from '../session.ts';

interface RunOptions {
  readonly period?: string;
  readonly at?: string;
  readonly set?: Readonly<Record<string, string>>;
  readonly wait?: boolean;
  readonly within: number;
  readonly release?: string;
  readonly reason?: string;
}

/** `run JOB`: a run by hand; `run --release RUN`: asks for the approval that lets a held or stopped one go on. */
export const addRun: AddCommand = (program, act) => {
  command(program, 'run [job]', {
    summary: 'start a run of a job by hand, or ask that one which is held, exhausted or cancelled may go on',
    example: [
      'npx onceper run settlement --period 2026-09 --wait',
      'npx onceper run --release 0c3f… --reason "checked with the bank"',
    ].join('\n  '),
  })
    .option('--period <period>', 'for this period, at the nominal time of its schedule')
    .option('--at <instant>', 'for this nominal time, for example 2026-09-30T18:00:00Z')
    .option('--set <name=value>', 'state an override; may be repeated', overridePair)
    .option('--wait', 'wait until the key is done or stopped')
    .addOption(
      new Option('--within <duration>', 'wait so long for a worker to decide it')
        .argParser(duration('--within'))
        .default(DECIDED_WITHIN_MS, '15s'),
    )
    .option('--release <run>', 'ask for the approval that lets the run with this id go on')
    .option('--reason <reason>', 'why it may')
    .action(
      act(async (session, job: string | undefined, options: RunOptions) => {
        checkOptions(job, options);
        const { release: run, reason = '' } = options;
        if (run !== undefined) return askRelease(session, run, reason);
        if (job !== undefined) session.registry.get(job);
        const report = await session.withDatabase((db) => startAndFollow(session, db, job ?? '', options));
        return answer(session, report, options.wait === true);
      }),
    );
};

/** The request was opened when the run was held; asked for again after it was decided or expired, it is another one. */
function askRelease(session: Session, run: string, reason: string): Promise<ExitCode> {
  return askFor(session, async (db) => ({
    kind: await kindOfWaiting(db, run),
    ask: { run },
    reason: reason.trim(),
  }));
}

function checkOptions(job: string | undefined, { period, at, set, release: run, reason, wait }: RunOptions): void {
  const help = 'npx onceper run --help';
  if (run === undefined) {
    if (job === undefined) throw usage('a job is missing', 'JOB', help);
    if (period !== undefined && at !== undefined) throw usage('--period and --at exclude each other', '--at', help);
    if (reason !== undefined) throw usage('--reason goes with --release', '--reason', help);
    return;
  }
  const other = [job, period, at].find((value) => value !== undefined) ?? (set === undefined ? undefined : '--set');
  if (other !== undefined) throw usage('a release keeps what its run was started with', other, help);
  if (wait === true) throw usage('a request is decided by somebody else: there is nothing to wait for', '--wait', help);
  if (reason === undefined || reason.trim() === '') throw usage('a request is signed with a reason', '--reason', help);
}

async function startAndFollow(session: Session, db: Database, job: string, options: RunOptions): Promise<RunReport> {
  const { registry, config } = session;
  const planned = await planRun(db, registry, { job, when: whenOf(options), overrides: options.set ?? {} });
  session.note(
    `${planned.key}, planned for ${localClock(planned.scheduledAt, planned.zone)} ${planned.zone.zone} (${planned.scheduledAt}), as run ${planned.id}`,
  );
  return session.withTemporal(async (client) => {
    const by = { actor: (await session.actor()).id, taskQueue: config.taskQueue };
    const workflowId = await startRun(db, client, planned, by);
    return follow(session, db, client, { ...planned, workflowId }, options);
  });
}

function whenOf({ period, at }: RunOptions): When {
  if (period !== undefined) return { kind: 'period', period };
  return at === undefined ? { kind: 'now' } : { kind: 'at', at };
}

interface Followed {
  readonly id: string;
  readonly key: string;
  readonly workflowId: string;
}

/** Longer than a worker takes to start, so that one which is being restarted is not reported as absent. */
const DECIDED_WITHIN_MS = 15_000;
const SILENT_MS = 3_000;

/** Waits for the decision, a bounded while, and with --wait for the end. */
async function follow(
  session: Session,
  db: Database,
  client: Client,
  run: Followed,
  options: RunOptions,
): Promise<RunReport> {
  const isDecided = (report: RunReport) => report.decision !== null;
  let isWarned = false;
  const decided = await watchRun(db, run, {
    enough: isDecided,
    withinMs: options.within,
    onRead(report, waitedMs) {
      if (isWarned || isDecided(report) || waitedMs < SILENT_MS) return;
      isWarned = true;
      session.note('no worker has taken it yet; waiting a little longer');
    },
  });
  if (!isDecided(decided)) {
    session.note(await undecidedNote(session, client, run));
    return { ...decided, decision: null };
  }
  if (options.wait !== true || isSettled(decided)) return decided;
  let said = '';
  return watchRun(db, run, {
    enough: (report) => isSettled(report) || session.left.aborted,
    withinMs: null,
    onRead(report) {
      const sentence = sentenceOf(report);
      if (sentence !== said) session.note(sentence);
      said = sentence;
    },
  });
}

async function undecidedNote(session: Session, client: Client, { workflowId, key }: Followed): Promise<string> {
  const { taskQueue } = session.config;
  const polled = await lastPoll(client, taskQueue);
  const seen =
    polled === null ? `no worker polls task queue ${taskQueue}` : `task queue ${taskQueue} was last polled ${polled}`;
  return `not decided yet: ${seen}; the start is kept in Temporal as ${workflowId} and nothing is lost — npx onceper worker, then npx onceper why ${key}`;
}

function answer(session: Session, report: RunReport, waited: boolean): ExitCode {
  const { key, run, decision, result, document, effects, notices, code, reason, state, owner } = report;
  session.answer(
    { key, run, decision, result, document, effects, notices, code, reason, state, owner },
    renderRun(report),
  );
  return exitCodeOfRun(decision, waited ? state : null);
}
