import type { Command } from 'commander';
import type { Occasion } from '../../jobs/occasion.ts';
import { bothClocks } from '../../ops/both-clocks.ts';
import { periodList } from '../../ops/period-list.ts';
import { activeRuleOf } from '../../ops/rule.ts';
import { type Applied, applyJobSchedule, type ListedSchedule, listSchedules } from '../../ops/schedule.ts';
import { type Paused, pauseSchedule } from '../../ops/schedule-pause.ts';
import { previewSchedule } from '../../ops/schedule-preview.ts';
import { clockOf } from '../../store/database.ts';
import { type Act, type AddCommand, command, noun } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { wholeNumber } from '../options.ts';
import type { Session } from '../session.ts';
import { table } from '../table.ts';

/** `schedule apply|list|pause|resume|preview`: the job's schedule in Temporal, owned by the rule. */
export const addSchedule: AddCommand = (program, act) => {
  const schedule = noun(program, 'schedule', "a job's schedule in Temporal");
  command(schedule, 'apply <job>', {
    summary: "make the job's schedule what its rule says, and read it back; a pause and its note stay",
    example: 'npx onceper schedule apply settlement',
  }).action(
    act(async (session, job: string) => {
      const applied = await apply(session, job);
      session.answer({ job, ...applied }, renderApplied(job, applied));
      return applied.drift.length === 0 ? EXIT.done : EXIT.attention;
    }),
  );
  command(schedule, 'list [job]', {
    summary: 'the schedules as Temporal has them, and where they differ from the rule',
    example: 'npx onceper schedule list settlement',
  }).action(
    act(async (session, job: string | undefined) => {
      const schedules = await list(session, job);
      session.answer({ schedules }, renderList(session, schedules));
      return EXIT.done;
    }),
  );
  for (const to of ['pause', 'resume'] as const) {
    command(schedule, `${to} <job>`, {
      summary:
        to === 'pause'
          ? 'fire no more until resumed; what falls due meanwhile waits'
          : 'fire again, and make up for what fell due meanwhile, as the rule says of missed firings',
      example: `npx onceper schedule ${to} settlement --reason "bank holiday"`,
    })
      .requiredOption('--reason <reason>', 'why; it is kept as the note of the schedule')
      .action(
        act(async (session, job: string, options: { reason: string }) => {
          const { registry, config } = session;
          registry.get(job);
          const actor = (await session.actor()).id;
          const ask = { registry, taskQueue: config.taskQueue, job, to, reason: options.reason, actor };
          const done = await session.withDatabase((db) =>
            session.withTemporal((client) => pauseSchedule(db, client, ask)),
          );
          session.answer(done, [`schedule ${job} is ${done.state} ("${done.note}")`, ...missedLines(done)].join('\n'));
          return EXIT.done;
        }),
      );
  }
  addPreview(schedule, act);
};

interface PreviewOptions {
  readonly count: number;
  readonly from?: string;
  readonly to?: string;
}

function addPreview(schedule: Command, act: Act): void {
  command(schedule, 'preview <job>', {
    summary: 'what closes each period by the rule: the next firings, and the periods that no firing closes',
    example: 'npx onceper schedule preview settlement --count 12',
  })
    .option('--count <n>', 'how many', wholeNumber('--count', 1, 10_000), 6)
    .option('--from <period>', 'from this period on, instead of from now')
    .option('--to <period>', 'up to this period')
    .action(
      act(async (session, job: string, { count, from, to }: PreviewOptions) => {
        const due = await session.withDatabase(async (db) => {
          const { rule } = await activeRuleOf(db, session.registry, job);
          const range = from === undefined && to === undefined ? null : { from: from ?? rule.first, to: to ?? null };
          return { rule, firings: previewSchedule(rule, await clockOf(db), count, range) };
        });
        const rows = due.firings.map(({ at, period, how }) => [bothClocks(at, due.rule), period, HOW[how]]);
        const { zone } = due.rule;
        session.answer({ job, zone, firings: due.firings }, table(session, ['fires', 'closes', 'how'], rows));
        return EXIT.done;
      }),
    );
}

/** How an occasion came by its instant, for people. */
const HOW: Readonly<Record<Occasion['how'], string>> = {
  calendar: '',
  gap: 'the stated time does not exist that day: the first instant after the clock jumped',
  repeated: 'the stated time occurs twice that day',
  moved: 'moved to a business day',
  caught_up: 'no firing closes it: the schedule has an instant for it at its end',
  check: 'no firing closes it: the check starts it after its end',
};

function apply(session: Session, job: string): Promise<Applied> {
  const { registry, config } = session;
  registry.get(job);
  return session.withDatabase((db) =>
    session.withTemporal(async (client) =>
      applyJobSchedule(db, client, { registry, job, taskQueue: config.taskQueue, actor: (await session.actor()).id }),
    ),
  );
}

function list(session: Session, job: string | undefined): Promise<ListedSchedule[]> {
  const { registry, config } = session;
  const jobs = job === undefined ? registry.ids : [registry.get(job).id];
  return session.withDatabase((db) =>
    session.withTemporal((client) => listSchedules(db, client, { registry, jobs, taskQueue: config.taskQueue })),
  );
}

function renderApplied(job: string, applied: Applied): string {
  const { kind, changed, drift, paused, note, next } = applied;
  const lines = [`schedule ${job}: ${kind}`, ...changed.map((what) => `  was: ${what}`)];
  if (paused) lines.push(`  it is paused${note === null ? '' : ` ("${note}")`}, and stays so`);
  lines.push(...drift.map((what) => `  still: ${what}`));
  lines.push(...unclosedLines(job, applied.unclosed));
  if (next.length > 0) lines.push(`  next: ${next.join(', ')}`);
  return lines.join('\n');
}

/** What a resumed schedule makes up for. */
function missedLines({ job, missed, makesUpFor }: Paused): string[] {
  const [first] = missed;
  if (first === undefined) return [];
  const which = missed.length === 1 ? first : `${missed.length} periods, ${periodList(missed)},`;
  const rest = makesUpFor === 'all' ? '' : '; the others are skipped by policy';
  return [`  ${which} came due meanwhile; the check starts ${makesUpFor} of them${rest} — npx onceper periods ${job}`];
}

/** Periods that no firing closes are told before somebody wonders why one ran at midnight. */
function unclosedLines(job: string, unclosed: Applied['unclosed']): string[] {
  const [first] = unclosed;
  if (first === undefined) return [];
  const which = `${unclosed.length} of the periods to come, ${first.period} first`;
  return [`  no firing closes ${which}: ${HOW[first.how].split(': ')[1]} — npx onceper schedule preview ${job}`];
}

function renderList(session: Session, schedules: readonly ListedSchedule[]): string {
  const rows = schedules.map(({ job, state, calendar, zone, next, drift }) => [
    job,
    state,
    calendar ?? '',
    zone ?? '',
    next[0] ?? '',
    drift.length === 0 ? 'none' : drift.join('; '),
  ]);
  return table(session, ['job', 'state', 'calendar', 'zone', 'next', 'drift'], rows);
}
