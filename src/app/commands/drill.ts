import { DRILLS } from '../../drills/all.ts';
import type { Drill, Verdict } from '../../drills/drill.ts';
import { runDrills } from '../../drills/run-drills.ts';
import { OnceperError } from '../../kernel/error.ts';
import { type AddCommand, command } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { stageOptions } from '../stage-options.ts';
import { table } from '../table.ts';

/** `drill`: faults on purpose, on throw-away servers, each with its verdict. */
export const addDrill: AddCommand = (program, act) => {
  command(program, 'drill [name]', {
    summary: 'break something on purpose on throw-away servers and say what was seen; `all` runs every drill',
    example: 'npx onceper drill kill-nine',
  }).action(act((session, name: string | undefined) => drill(session, name)));
};

async function drill(session: Session, name: string | undefined) {
  if (name === undefined) return list(session);
  const chosen = choose(name);
  const options = stageOptions(
    { ...session.config, given: { databaseUrl: null, temporalAddress: null } },
    (await session.actor()).id,
    () => undefined,
  );
  const verdicts = await runDrills(chosen, options, ({ name: drill }, sentence) => {
    if (!session.wantsJson) session.note(`${drill}: ${sentence}`);
  });
  session.answer({ drills: verdicts }, verdicts.map((verdict) => report(session, verdict)).join('\n'));
  return verdicts.every((verdict) => verdict.ok) ? EXIT.done : EXIT.attention;
}

function list(session: Session) {
  const drills = DRILLS.map(({ name, fault, guard }) => ({ name, fault, guard }));
  session.answer(
    { drills },
    table(
      session,
      ['drill', 'what it does', 'what keeps it right'],
      drills.map(({ name, fault, guard }) => [name, fault, guard]),
    ),
  );
  return Promise.resolve(EXIT.done);
}

function choose(name: string): readonly Drill[] {
  if (name === 'all') return DRILLS;
  const found = DRILLS.find((one) => one.name === name);
  if (found !== undefined) return [found];
  throw new OnceperError({
    code: 'unknown_drill',
    message: `no drill is called ${name}`,
    remedy: `the known ones are: ${DRILLS.map((one) => one.name).join(', ')}, all`,
    at: name,
  });
}

function report(session: Session, verdict: Verdict): string {
  const { colours } = session;
  const rows = verdict.facts.map(({ what, expected, seen }) => [
    expected === seen ? colours.green('as expected') : colours.red('DIFFERS'),
    what,
    expected,
    seen,
  ]);
  const head = `${verdict.drill}: ${verdict.ok ? 'passed' : 'FAILED'} in ${verdict.seconds.toFixed(1)} s`;
  return `${head}\n${table(session, ['', 'fact', 'expected', 'seen'], rows)}\n`;
}
