import { type Command, Option } from 'commander';
import { planBackfill } from '../../ops/approval/backfill.ts';
import { wakeBackfill } from '../../ops/approval/wake.ts';
import { readBackfill, stateOf, stopBackfill } from '../../ops/backfill.ts';
import { listBackfills } from '../../store/backfills.ts';
import { actParts, askFor, REASON, reasonOf } from '../approval-request.ts';
import { renderPlan } from '../approval-text.ts';
import { renderBackfill, renderBackfills, shownBackfill } from '../backfill-text.ts';
import { type Act, type AddCommand, command, noun } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { usage } from '../fault.ts';
import { duration, wholeNumber } from '../options.ts';
import type { Session } from '../session.ts';

/** `backfill request|list|show|cancel`: periods that were missed, run in one approved go. */
export const addBackfill: AddCommand = (program, act) => {
  const backfill = noun(program, 'backfill', 'periods that were missed or failed, run in one approved go');
  addRequest(backfill, act);
  addList(backfill, act);
  addShow(backfill, act);
  addCancel(backfill, act);
};

interface RequestOptions {
  readonly from: string;
  readonly to: string;
  readonly reason?: string;
  readonly limit: number;
  readonly validFor?: number;
  readonly dryRun?: boolean;
  readonly only?: string;
}

function addRequest(backfill: Command, act: Act): void {
  command(backfill, 'request <job>', {
    summary: 'ask for the periods of a range that are missing or failed; what is done or under way stays as it is',
    example: 'npx onceper backfill request settlement --from 2026-07 --to 2026-09 --reason "the worker was down"',
  })
    .requiredOption('--from <period>', 'the first period')
    .requiredOption('--to <period>', 'the last period, itself included')
    .option('--reason <reason>', REASON)
    .addOption(new Option('--only <state>', 'of the range only these').choices(['missing', 'failed', 'held']))
    .option('--limit <n>', 'so many periods under way at once', wholeNumber('--limit', 1, 64), 2)
    .option('--valid-for <duration>', 'how long it may be approved (7d)', duration('--valid-for'))
    .option('--dry-run', 'show what would become of each period, and ask for nothing')
    .action(
      act(async (session, job: string, options: RequestOptions) => {
        session.registry.get(job);
        const { from, to, limit, only, reason, validFor } = options;
        const ask = { job, from, to, limit, ...(only === undefined ? {} : { only }) };
        if (options.dryRun === true) return dryRun(session, ask);
        if (reason === undefined) throw usage('a request is signed with a reason', '--reason', 'or add --dry-run');
        const signed = { kind: 'backfill', ask, reason: reasonOf({ reason }) } as const;
        return askFor(session, validFor === undefined ? signed : { ...signed, validMs: validFor });
      }),
    );
}

async function dryRun(session: Session, ask: Parameters<typeof planBackfill>[2]) {
  const plan = await session.withDatabase((db) => planBackfill(db, actParts(session), ask));
  session.answer({ plan }, renderPlan(session, plan));
  return plan.periods.some(({ act }) => act === 'refused') ? EXIT.refused : EXIT.done;
}

function addList(backfill: Command, act: Act): void {
  command(backfill, 'list', {
    summary: 'backfills that were approved, the newest first; those that wait are in approvals list',
    example: 'npx onceper backfill list --job settlement',
  })
    .option('--job <job>', 'of this job only')
    .option('--limit <n>', 'at most so many', wholeNumber('--limit', 1, 10_000), 50)
    .action(
      act(async (session, options: { readonly job?: string; readonly limit: number }) => {
        const { job = null, limit } = options;
        const found = await session.withDatabase((db) => listBackfills(db, { job, limit }));
        const backfills = found.map((one) => ({ ...one, state: stateOf(one) }));
        session.answer({ backfills }, renderBackfills(session, backfills));
        return EXIT.done;
      }),
    );
}

function addShow(backfill: Command, act: Act): void {
  command(backfill, 'show <id>', {
    summary: 'one backfill: what has become of each of its periods by now',
    example: 'npx onceper backfill show 0c3f…',
  }).action(
    act(async (session, id: string) => {
      const story = await session.withDatabase((db) => readBackfill(db, id));
      session.answer(shownBackfill(story), renderBackfill(session, story));
      return EXIT.done;
    }),
  );
}

function addCancel(backfill: Command, act: Act): void {
  command(backfill, 'cancel <id>', {
    summary: 'start no further period of it; those that were started go on to their end',
    example: 'npx onceper backfill cancel 0c3f… --reason "wrong range"',
  })
    .requiredOption('--reason <reason>', 'why, for the record')
    .action(
      act(async (session, id: string, options: { readonly reason: string }) => {
        const stop = { id, actor: (await session.actor()).id, reason: reasonOf(options) };
        const story = await session.withDatabase((db) => stopBackfill(db, stop));
        await wake(session, id);
        session.answer(shownBackfill(story), renderBackfill(session, story));
        return EXIT.done;
      }),
    );
}

/** The cancel stands in the ledger already; its dispatcher sees it with its next look. */
async function wake(session: Session, id: string): Promise<void> {
  try {
    await session.withTemporal((client) => wakeBackfill(client, id, session.config.taskQueue));
  } catch (error) {
    session.note(
      `it is cancelled; Temporal could not be told (${error instanceof Error ? error.message : String(error)})`,
    );
  }
}
