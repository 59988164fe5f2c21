import { down } from '../../embedded/down.ts';
import { passwordFile } from '../../embedded/postgres-password.ts';
import { postgresFolder } from '../../embedded/server-state.ts';
import { type RunningServers, type StartOptions, up, upDetached } from '../../embedded/servers.ts';
import { cacheFolder } from '../../embedded/temporal-cli.ts';
import { type LoadedRule, loadRule } from '../../ops/rule.ts';
import { openDatabase } from '../../store/database.ts';
import { migrate } from '../../store/migrate.ts';
import { type AddCommand, command } from '../command.ts';
import { psqlCommand, withoutPassword } from '../database-url.ts';
import { drainOnSignal } from '../drain.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { readRuleFile, unclosedText } from '../rule-file.ts';
import { createProcessLog } from '../services.ts';
import type { Session } from '../session.ts';

interface UpOptions {
  readonly detach?: boolean;
  readonly rules?: string;
}

/** `up`: PostgreSQL and Temporal for this machine, migrated and with a rule. */
export const addUp: AddCommand = (program, act) => {
  command(program, 'up', {
    summary: 'start PostgreSQL and Temporal for this project, migrate, and load the rules',
    example: 'npx onceper up --detach',
  })
    .option('--detach', 'leave them running until `onceper down`')
    .option('--rules <file>', 'load this rule file as version 1 of its job (rules/settlement.json)')
    .action(act((session, options: UpOptions) => start(session, options)));
};

type Rules = ReturnType<typeof readRuleFile>;

/** Servers that are there, and how to stop them where it was we who started them; `given` is when variables name both. */
interface Started {
  readonly kind: 'started' | 'already_running' | 'given';
  readonly servers: Pick<RunningServers, 'postgres' | 'temporal'>;
  readonly addresses: { readonly databaseUrl: string; readonly temporalAddress: string };
  readonly stop: () => Promise<unknown>;
}

async function start(session: Session, options: UpOptions): Promise<ExitCode> {
  // Checked first: a file with a mistake must not leave servers running.
  const rules = readRuleFile(session.registry, options.rules);
  const startOptions = startOptionsOf(session);
  const { databaseUrl, temporalAddress } = startOptions;
  if (databaseUrl !== null && temporalAddress !== null) {
    const addresses = { databaseUrl, temporalAddress };
    await prepare(
      session,
      { kind: 'given', servers: { postgres: null, temporal: null }, addresses, stop: nothing },
      rules,
    );
    return EXIT.done;
  }
  if (options.detach === true) {
    const { projectDir } = startOptions;
    const started = await upDetached(startOptions);
    const stop = started.kind === 'started' ? () => down({ projectDir }) : nothing;
    await prepare(session, { ...started, stop }, rules);
    return EXIT.done;
  }
  const running = await up(startOptions);
  if (running.kind === 'already_running') {
    await prepare(session, { ...running, stop: nothing }, rules);
    return EXIT.done;
  }
  const stopping = drainOnSignal(createProcessLog(session.config, 'up'), 0);
  await prepare(session, running, rules);
  const ended = await Promise.race([running.ended, abortOf(stopping)]);
  await running.stop();
  if (ended === null) return EXIT.done;
  session.note(`${ended.server} ended by itself with ${ended.code}, so all were stopped; its log is ${ended.logFile}`);
  return EXIT.failed;
}

const nothing = () => Promise.resolve();

function startOptionsOf({ config, note }: Session): StartOptions {
  const { fromVariable, path, xdgCacheHome } = config.temporalCli;
  return {
    projectDir: config.home,
    databaseUrl: config.given.databaseUrl,
    temporalAddress: config.given.temporalAddress,
    temporalCli: { explicit: fromVariable, path, cacheDir: cacheFolder(xdgCacheHome) },
    onProgress: note,
  };
}

/** Migrates, loads the rule, and tells what is there; what was started for it is stopped again when that fails. */
async function prepare(session: Session, started: Started, rules: Rules): Promise<void> {
  try {
    const { databaseUrl, temporalAddress } = started.addresses;
    const { applied } = await migrate(databaseUrl);
    const rule = await loadInto(databaseUrl, (await session.actor()).id, rules);
    const uiUrl = started.servers.temporal?.uiUrl ?? null;
    const { kind } = started;
    session.answer(
      { kind, databaseUrl: withoutPassword(databaseUrl), temporalAddress, uiUrl, applied, rule },
      render(session, started, rule),
    );
  } catch (error) {
    await started.stop();
    throw error;
  }
}

async function loadInto(databaseUrl: string, actor: string, rules: Rules): Promise<LoadedRule> {
  const db = openDatabase({ url: databaseUrl, name: 'onceper up', max: 1 });
  try {
    return await loadRule(db, rules.checked, { at: rules.at, actor });
  } finally {
    await db.close();
  }
}

const HEADS = {
  started: 'ready',
  already_running: 'these run already',
  given: 'ready; variables name both servers, so none was started',
} as const;

function render({ colours, config }: Session, { kind, servers, addresses }: Started, rule: LoadedRule): string {
  const { databaseUrl, temporalAddress } = addresses;
  const ui = servers.temporal === null ? [] : [`Temporal UI  ${servers.temporal.uiUrl}`];
  const isOurs = servers.postgres?.url === databaseUrl;
  const psql = isOurs ? [`  look inside  ${psqlCommand(databaseUrl, passwordFile(postgresFolder(config.home)))}`] : [];
  const close = kind === 'started' ? 'then:' : 'go on with:';
  const job = rule.job;
  return [
    colours.bold(HEADS[kind]),
    `PostgreSQL   ${withoutPassword(databaseUrl)}`,
    ...psql,
    `Temporal     ${temporalAddress}`,
    ...ui,
    `rule         ${job}, version ${rule.version}, ${rule.kind}`,
    ...(rule.unclosed === null ? [] : [`             ${unclosedText(job, rule.unclosed)}`]),
    '',
    close,
    ...[
      'npx onceper gateway',
      'npx onceper worker',
      'ONCEPER_GATEWAY_URL=http://127.0.0.1:8290 npx onceper relay',
      `npx onceper schedule apply ${job}`,
      'npx onceper import FILE --source generic',
      `npx onceper periods ${job}`,
      'npx onceper doctor',
      'npx onceper down',
    ].map((line) => `  ${colours.cyan(line)}`),
  ].join('\n');
}

function abortOf(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null);
    signal.addEventListener('abort', () => resolve(null), { once: true });
  });
}
