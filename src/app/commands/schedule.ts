import type { Command } from 'commander';
import { bothClocks } from '../../ops/both-clocks.ts';
import { activeRuleOf } from '../../ops/rule.ts';
import { type Applied, applyJobSchedule, type ListedSchedule, listSchedules } from '../../ops/schedule.ts';
import { pauseSchedule } from '../../ops/schedule-pause.ts';
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
          ? 'fire no more until resumed; what falls due meanwhile is not caught up'
          : 'fire again from now on',
      example: `npx onceper schedule ${to} settlement --reason "bank holiday"`,
    })
      .requiredOption('--reason <reason>', 'why; it is kept as the note of the schedule')
      .action(
        act(async (session, job: string, options: { reason: string }) => {
          session.registry.get(job);
          const ask = { job, to, reason: options.reason, actor: (await session.actor()).id };
          const done = await session.withDatabase((db) =>
            session.withTemporal((client) => pauseSchedule(db, client, ask)),
          );
          session.answer(done, `schedule ${job} is ${done.state} ("${done.note}")`);
          return EXIT.done;
        }),
      );
  }
  addPreview(schedule, act);
};

function addPreview(schedule: Command, act: Act): void {
  command(schedule, 'preview <job>', {
    summary: 'the next firings by the rule, and the period that each will close',
    example: 'npx onceper schedule preview settlement --count 12',
  })
    .option('--count <n>', 'how many', wholeNumber('--count', 1, 1_000), 6)
    .action(
      act(async (session, job: string, options: { count: number }) => {
        const due = await session.withDatabase(async (db) => {
          const { rule } = await activeRuleOf(db, session.registry, job);
          return { zone: rule.zone, firings: previewSchedule(rule, await clockOf(db), options.count) };
        });
        const rows = due.firings.map(({ at, period }) => [bothClocks(at, due.zone), period]);
        session.answer({ job, ...due }, table(session, ['fires', 'closes'], rows));
        return EXIT.done;
      }),
    );
}

function apply(session: Session, job: string): Promise<Applied> {
  const { registry, config } = session;
  registry.get(job);
  return session.withDatabase((db) =>
    session.withTemporal((client) => applyJobSchedule(db, client, { registry, job, taskQueue: config.taskQueue })),
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
  if (next.length > 0) lines.push(`  next: ${next.join(', ')}`);
  return lines.join('\n');
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
