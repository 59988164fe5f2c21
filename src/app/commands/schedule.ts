import { type Applied, applyJobSchedule, type ListedSchedule, listSchedules } from '../../ops/schedule.ts';
import { type AddCommand, command, noun } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { table } from '../table.ts';

/** `schedule apply|list`: the job's schedule in Temporal, owned by the rule. */
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
};

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
