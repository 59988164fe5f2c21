import { refuseInternal } from '../../gateway/receivers.ts';
import { normaliseInstant } from '../../kernel/instant.ts';
import { inWords } from '../../ops/both-clocks.ts';
import { type Check, ok, warn } from '../../ops/check.ts';
import { examine } from '../../ops/doctor.ts';
import { migrationStanding } from '../../store/migrate.ts';
import { type AddCommand, command } from '../command.ts';
import { type Config, requireDatabaseUrl } from '../config.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { refusePlainHttp } from '../gateway.ts';
import { knownReceivers } from '../receivers.ts';
import { reconcile } from '../reconcile-rewind.ts';
import { checkGatewayTerms, deliveryHorizons } from '../retention.ts';
import { connectTemporal, createDatabase, createProcessLog } from '../services.ts';
import type { Session } from '../session.ts';
import { table } from '../table.ts';

interface DoctorOptions {
  readonly reconcileRewind?: true;
  readonly since: string;
}

/** `doctor`: whether everything that a settlement needs is there and as it must be. */
export const addDoctor: AddCommand = (program, act) => {
  command(program, 'doctor', {
    summary: 'look at servers, schema, rules, schedules, worker, books, periods and effects; changes nothing',
    example: 'npx onceper doctor',
  })
    .option(
      '--reconcile-rewind',
      'compare a frozen ledger with the counterparty, and let delivery go on when nothing is lost',
    )
    .option('--since <instant>', 'ask the counterparty for transfers from this instant on', '1970-01-01T00:00:00Z')
    .action(
      act(async (session, options: DoctorOptions) => {
        if (options.reconcileRewind === true) return reconcile(session, normaliseInstant(options.since));
        const { config, registry } = session;
        const log = createProcessLog(config, 'command');
        const checks = await examine({
          registry,
          taskQueue: config.taskQueue,
          delivery: deliveryHorizons(config.delivery),
          openDatabase: () => createDatabase(config, log, { name: 'onceper doctor', max: 2 }),
          connectTemporal: () => connectTemporal(config),
          migrationStanding: () => migrationStanding(requireDatabaseUrl(config)),
          checkGateway: () => gatewayCheck(config),
          checkReceivers: () => receiversCheck(config),
        });
        const code = exitCodeOf(checks);
        session.answer({ ok: code === EXIT.done, checks: checks.map(rowOf) }, render(session, checks));
        return code;
      }),
    );
};

/** A row that fails needs somebody; a server that can't be reached comes before all else. */
function exitCodeOf(checks: readonly Check[]): ExitCode {
  if (checks.some(({ isServer, state }) => isServer && state === 'fail')) return EXIT.failed;
  return checks.some(({ state }) => state === 'fail') ? EXIT.attention : EXIT.done;
}

function rowOf({ check, state, detail, remedy }: Check) {
  return { check, state, detail, remedy };
}

function gatewayCheck(config: Config): Check {
  const { gateway } = config;
  const { keyWindowMs, visibilityDelayMs } = gateway;
  if (gateway.kind === 'http') refusePlainHttp(gateway);
  checkGatewayTerms(config);
  const terms = `numbers remembered for ${inWords(keyWindowMs)}, visible after ${inWords(visibilityDelayMs)}`;
  if (gateway.url !== null) return ok('gateway', `${gateway.url}, ${terms}`);
  return warn('gateway', `ONCEPER_GATEWAY_URL is not set here; ${terms}`, 'set it where the relay runs');
}

/** The secrets are the relay's; a shell without them can't say more than the names. */
function receiversCheck(config: Config): Check {
  const { addresses, secrets, networks } = config.receivers;
  if (addresses.length === 0) return ok('receivers', 'none is told of settlements');
  refuseInternal(addresses, networks);
  const named = addresses.map(({ name, url }) => `${name} at ${new URL(url).origin}`).join(', ');
  if (secrets === null)
    return warn('receivers', `${named}; ONCEPER_RECEIVER_SECRETS is not set here`, 'set it where the relay runs');
  const changing = knownReceivers(config).filter((receiver) => receiver.secrets.length > 1);
  return ok(
    'receivers',
    changing.length === 0 ? named : `${named}; two secrets for ${changing.map(({ name }) => name).join(', ')}`,
  );
}

function render(session: Session, checks: readonly Check[]): string {
  const { colours } = session;
  const paint = { ok: colours.green, warn: colours.yellow, fail: colours.red };
  const rows = checks.map(({ check, state, detail, remedy }) => [
    paint[state](state),
    check,
    remedy === null ? detail : [detail, `→ ${remedy}`],
  ]);
  return table(session, ['', 'check', 'found'], rows);
}
