import type { DemoFacts } from '../../drills/facts.ts';
import { type Stage, setStage } from '../../drills/stage.ts';
import { passwordFile } from '../../embedded/postgres-password.ts';
import { postgresFolder } from '../../embedded/server-state.ts';
import { OnceperError } from '../../kernel/error.ts';
import { backfillCommand, triggerCommand } from '../../ops/commands.ts';
import { type Act, type AddCommand, command } from '../command.ts';
import { demoFolder } from '../config.ts';
import { psqlCommand, withoutPassword } from '../database-url.ts';
import { type DemoInput, demoSteps } from '../demo/demo.ts';
import { performSteps } from '../demo/perform-steps.ts';
import { EXIT } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { stageOptions } from '../stage-options.ts';
import { table } from '../table.ts';

interface Options {
  readonly input?: string;
  readonly source?: string;
  readonly stay?: true;
}

export const addDemo: AddCommand = (program, act: Act) => {
  command(program, 'demo', {
    summary: 'settle a year on servers of its own: once, through lost connections, a backfill and a manual trigger',
    example: 'npx onceper demo --input transactions.csv.gz --source birmingham-cards',
  })
    .option('--input <file>', 'settle this file instead of the generated sample')
    .option('--source <name>', 'the format of that file')
    .option('--stay', 'leave everything running until Ctrl-C, and print addresses and commands')
    .action(act((session, options: Options) => demo(session, options)));
};

async function demo(session: Session, options: Options) {
  const input = inputOf(options);
  const note = session.wantsJson ? () => undefined : session.note;
  // Its journal, logs and sample are for whoever started it.
  process.umask(0o077);
  const interrupted = interruption();
  const stage = await setStage({
    ...stageOptions(session.config, (await session.actor()).id, note),
    folder: demoFolder(session.config.home),
  });
  try {
    const { steps, facts } = demoSteps(stage, input);
    await Promise.race([performSteps(session, steps), interrupted.promise]);
    const found = await facts();
    session.answer(found, report(session, found));
    if (options.stay === true) await stay(session, stage, { ...found, byTrigger: input === null }, interrupted.promise);
    return found.ok ? EXIT.done : EXIT.attention;
  } finally {
    interrupted.forget();
    await stage.stop();
  }
}

function inputOf(options: Options): DemoInput | null {
  if (options.input === undefined && options.source === undefined) return null;
  if (options.input !== undefined && options.source !== undefined)
    return { file: options.input, source: options.source };
  throw new OnceperError({
    code: 'usage',
    message: 'an input needs its format, and a format its input',
    remedy: 'give both --input FILE and --source S',
    at: 'demo',
  });
}

function report(session: Session, found: DemoFacts): string {
  const attempts = found.outcomes.map(
    ({ number, outcome, code }) => `${number} ${outcome}${code === null ? '' : ` (${code})`}`,
  );
  const ledger = Object.entries(found.ledger).map(([currency, gap]) => `${currency} ${gap}`);
  const rows = [
    ['runs', String(found.runs)],
    ['attempts', attempts.join(', ')],
    ['grants', String(found.grants)],
    ['duplicates', `${found.duplicates}, each answered with ${found.documentId}`],
    ['documents', String(found.documents)],
    ['payable merchants', String(found.payable)],
    ["transfers in the gateway's journal", String(found.transfers)],
    ['ledger', ledger.join(', ')],
  ];
  return `\n${table(session, [found.key, found.ok ? 'settled once' : 'NOT AS IT MUST BE'], rows)}\n`;
}

/** Prints what there is to look at and to type, and waits for Ctrl-C. */
async function stay(
  session: Session,
  stage: Stage,
  found: DemoFacts & { readonly byTrigger: boolean },
  interrupted: Promise<never>,
): Promise<void> {
  const [job = '', period = ''] = found.key.split(':');
  const psql = psqlCommand(stage.databaseUrl, passwordFile(postgresFolder(stage.folder)));
  const lines = [
    '',
    `PostgreSQL    ${withoutPassword(stage.databaseUrl)}`,
    ...(session.config.given.databaseUrl === null ? [`               ${psql}`] : []),
    `Temporal      ${stage.temporalAddress}`,
    ...(stage.uiUrl === null ? [] : [`Temporal UI   ${stage.uiUrl}`]),
    `Gateway       ${stage.gatewayUrl}  (journal ${stage.journal})`,
    '',
    'Type, for example:',
    `  npx onceper why ${found.key}`,
    `  npx onceper run ${job} --period ${period}`,
    ...(found.byTrigger ? [`  ${triggerCommand(job)}`] : []),
    `  ${backfillCommand(job, found.closing, found.closing)}`,
    '',
    'Ctrl-C ends all of it.',
  ];
  for (const line of lines) session.note(line);
  await interrupted.catch((error: unknown) => {
    if (error instanceof OnceperError && error.code === 'interrupted') return;
    throw error;
  });
}

/** Ctrl-C or SIGTERM ends the demo in order; a second one changes nothing, since everything must be stopped. */
function interruption(): { promise: Promise<never>; forget: () => void } {
  let interrupt: (signal: NodeJS.Signals) => void = () => undefined;
  const promise = new Promise<never>((_, reject) => {
    interrupt = (signal) =>
      reject(
        new OnceperError({ code: 'interrupted', message: `the demo was ended by ${signal}`, remedy: 'start it again' }),
      );
  });
  promise.catch(() => undefined);
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  return {
    promise,
    forget() {
      process.off('SIGINT', interrupt);
      process.off('SIGTERM', interrupt);
    },
  };
}
