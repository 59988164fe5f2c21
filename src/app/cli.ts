import { Command, CommanderError } from 'commander';
import { admitHere } from './break-glass.ts';
import type { Act, AddCommand } from './command.ts';
import { addAdjust } from './commands/adjust.ts';
import { addApprovals } from './commands/approvals.ts';
import { addAudit } from './commands/audit.ts';
import { addBackfill } from './commands/backfill.ts';
import { addDemo } from './commands/demo.ts';
import { addDestination } from './commands/destination.ts';
import { addDoctor } from './commands/doctor.ts';
import { addDown } from './commands/down.ts';
import { addDrill } from './commands/drill.ts';
import { addEffects } from './commands/effects.ts';
import { addGateway } from './commands/gateway.ts';
import { addHold } from './commands/hold.ts';
import { addImport } from './commands/import.ts';
import { addMigrate } from './commands/migrate.ts';
import { addOutbox } from './commands/outbox.ts';
import { addPeriods } from './commands/periods.ts';
import { addRelay } from './commands/relay.ts';
import { addRun } from './commands/run.ts';
import { addSchedule } from './commands/schedule.ts';
import { addServer } from './commands/server.ts';
import { addShow } from './commands/show.ts';
import { addSkip } from './commands/skip.ts';
import { addTakeover } from './commands/takeover.ts';
import { addToken } from './commands/token.ts';
import { addUp } from './commands/up.ts';
import { addWebhooks } from './commands/webhooks.ts';
import { addWhy } from './commands/why.ts';
import { addWorker } from './commands/worker.ts';
import { EXIT, type ExitCode, exitCodeOfError } from './exit-codes.ts';
import { faultDocument, faultLine, faultOf, outputRefused } from './fault.ts';
import { type Io, processIo, throughDoor } from './io.ts';
import { readableFile } from './options.ts';
import { perform } from './perform.ts';
import { askServer } from './server/ask.ts';
import { TypedWords } from './server/typed-words.ts';
import { documentText, type Surroundings } from './session.ts';

/** Every noun, in the order in which help shows it; a new one is added here and nowhere else. */
const COMMANDS: readonly AddCommand[] = [
  addUp,
  addDown,
  addDemo,
  addMigrate,
  addWorker,
  addRelay,
  addWebhooks,
  addGateway,
  addServer((act) => createProgram(SILENT, act)),
  addImport,
  addSchedule,
  addRun,
  addBackfill,
  addTakeover,
  addSkip,
  addAdjust,
  addHold,
  addApprovals,
  addPeriods,
  addShow,
  addWhy,
  addEffects,
  addOutbox,
  addDestination,
  addAudit,
  addDoctor,
  addToken,
  addDrill,
];

/** What commander itself would print is nothing that a server's answer has. */
const SILENT = { out: () => undefined, err: () => undefined };

const EXIT_CODES = `
Exit codes:
  0  done, or a duplicate answered with the stored result
  1  no server, and anything else
  2  usage, malformed or unknown
  3  refused or held, or a refused file
  4  conflict
  5  in progress, deferred, or admitted and not waited for
  6  needs attention, or ended failed`;

/**
 * Runs one command line (without `node` and the script) and returns its exit code; never throws and never exits. With
 * `--json` standard output carries exactly one JSON document: the answer, or the error. What standard output did not take is an
 * error too, unless its reader left.
 */
export async function main(argv: readonly string[], outside: Io = processIo()): Promise<ExitCode> {
  const io = throughDoor(outside);
  const code = await run(argv, io);
  const refusal = await io.refusal();
  return refusal === null ? code : report(io, outputRefused(refusal), false);
}

async function run(argv: readonly string[], io: Io): Promise<ExitCode> {
  const wantsJson = argv.includes('--json');
  let isAnswered = false;
  const around: Surroundings = {
    wantsJson,
    hasColours: !wantsJson && io.isTerminal && (io.environment['NO_COLOR'] ?? '') === '',
    answer(document, text) {
      isAnswered = true;
      io.out(wantsJson ? documentText(document) : `${text.trimEnd()}\n`);
    },
    note: (line) => io.err(`${line}\n`),
    pathOfFile: readableFile,
    left: new AbortController().signal,
    admit: admitHere,
  };
  const typed = new TypedWords();
  const create = (act: Act) => typed.listenTo(createProgram(io, act));
  const ended = await perform(create, argv, {
    io,
    around,
    elsewhere: (session, command) => askServer(session, typed.of(command)),
  });
  if ('exit' in ended) return ended.exit;
  const { thrown } = ended;
  if (thrown instanceof CommanderError && isHelp(thrown)) {
    return thrown.code === 'commander.help' ? EXIT.usage : EXIT.done;
  }
  return report(io, thrown, wantsJson && !isAnswered);
}

/** The program with all its commands; `act` makes their actions. */
export function createProgram(io: Pick<Io, 'out' | 'err'>, act: Act): Command {
  const program = new Command('onceper')
    .description('Scheduled business jobs that happen once per business period, on Temporal and PostgreSQL.')
    .exitOverride()
    .configureOutput({ writeOut: io.out, writeErr: io.err, outputError: () => undefined })
    .configureHelp({ showGlobalOptions: false })
    .addHelpText('after', EXIT_CODES);
  for (const add of COMMANDS) add(program, act);
  return program;
}

/** `--help` was asked for; `commander.help` is a noun typed alone, which shows its help and is a usage error. */
function isHelp(error: CommanderError): boolean {
  return error.code === 'commander.helpDisplayed' || error.code === 'commander.help';
}

function report(io: Io, thrown: unknown, asDocument: boolean): ExitCode {
  const fault = faultOf(thrown);
  if (asDocument) io.out(documentText(faultDocument(fault)));
  else io.err(`${faultLine(fault)}\n`);
  if (io.environment['ONCEPER_LOG_LEVEL'] === 'debug') io.err(`${traceOf(thrown)}\n`);
  return exitCodeOfError(fault.code);
}

function traceOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const cause = thrown.cause === undefined ? '' : `\ncaused by ${traceOf(thrown.cause)}`;
  return `${thrown.stack ?? thrown.message}${cause}`;
}
