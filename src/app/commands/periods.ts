import { type ExpectedState, OVERDUE } from '../../jobs/expectation.ts';
import { type Expectation, expectedPeriods } from '../../ops/periods.ts';
import { type AddCommand, command } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { table } from '../table.ts';

interface PeriodsOptions {
  readonly from?: string;
  readonly to?: string;
}

/** `periods JOB`: what had to be run, and what became of it. */
export const addPeriods: AddCommand = (program, act) => {
  command(program, 'periods <job>', {
    summary:
      'every period that should have been run by now, and what became of it; exit code 6 where one needs somebody',
    example: 'npx onceper periods settlement --from 2026-01 --to 2026-10',
  })
    .option('--from <period>', 'the first to show')
    .option('--to <period>', 'the last to show')
    .action(
      act(async (session, job: string, options: PeriodsOptions) => {
        session.registry.get(job);
        const { from, to } = options;
        const range = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
        const expected = await session.withDatabase((db) => expectedPeriods(db, session.registry, { job, ...range }));
        session.answer({ job: expected.job, periods: expected.periods }, render(session, expected));
        return expected.periods.some(({ state }) => OVERDUE.has(state)) ? EXIT.attention : EXIT.done;
      }),
    );
};

function render(session: Session, { job, periods }: Expectation): string {
  if (periods.length === 0) return `${job} has no period here that has ended`;
  const rows = periods.map(({ period, state, reason }) => [period, coloured(session, state), reason ?? '']);
  return table(session, ['period', 'state', 'reason'], rows);
}

function coloured({ colours }: Session, state: ExpectedState): string {
  const text = state.replaceAll('_', ' ');
  if (state === 'done' || state === 'compensated') return colours.green(text);
  if (state === 'missing' || state === 'stalled' || state === 'exhausted') return colours.red(text);
  return colours.yellow(text);
}
