import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type SimulatorOptions, startSimulator } from '../../gateway/simulator/simulator.ts';
import { type AddCommand, command } from '../command.ts';
import { drainOnSignal } from '../drain.ts';
import { EXIT } from '../exit-codes.ts';
import { fileFault, wholeNumber } from '../options.ts';
import { createProcessLog } from '../services.ts';

interface GatewayOptions {
  readonly port: number;
  readonly journal?: string;
  readonly delay?: number;
  readonly dropEvery?: number;
  readonly failEvery?: number;
  readonly lag?: number;
}

/** `gateway`: a counterparty that speaks the HTTP contract, for trying things out and for drills. */
export const addGateway: AddCommand = (program, act) => {
  command(program, 'gateway', {
    summary: 'run a simulated counterparty until SIGTERM; its journal is the truth about money',
    example: 'npx onceper gateway --port 8290 --journal journal.jsonl --drop-every 5',
  })
    .option('--port <n>', 'the port on 127.0.0.1; 0 takes a free one', wholeNumber('--port', 0, 65_535), 8290)
    .option('--journal <file>', 'the file of its journal; what it holds is remembered (.onceper/gateway.jsonl)')
    .option('--delay <ms>', 'hold every transfer so long before acting', wholeNumber('--delay', 1, 3_600_000))
    .option('--drop-every <n>', 'act on every n-th transfer, and drop the answer', wholeNumber('--drop-every', 1, 1e6))
    .option('--fail-every <n>', 'answer every n-th with 500, without acting', wholeNumber('--fail-every', 1, 1e6))
    .option('--lag <ms>', 'hide a transfer so long from look-ups', wholeNumber('--lag', 1, 3_600_000))
    .action(
      act(async (session, options: GatewayOptions) => {
        const { config } = session;
        const log = createProcessLog(config, 'gateway');
        const journal = options.journal ?? join(config.home, '.onceper', 'gateway.jsonl');
        if (options.journal === undefined) mkdirSync(dirname(journal), { recursive: true });
        const draining = drainOnSignal(log, 0);
        const simulator = await startSimulator({ port: options.port, journal, settings: settingsOf(options) }).catch(
          (error: unknown) => {
            throw fileFault(error, journal);
          },
        );
        log({ event: 'gateway_started', url: simulator.url, journal });
        session.answer({ url: simulator.url, port: simulator.port, journal }, `${simulator.url}, journal ${journal}`);
        await aborted(draining);
        await simulator.stop();
        log({ event: 'stopped', code: 0 });
        return EXIT.done;
      }),
    );
};

function settingsOf(options: GatewayOptions): NonNullable<SimulatorOptions['settings']> {
  const { delay, dropEvery, failEvery, lag } = options;
  return {
    every: [
      ...(dropEvery === undefined ? [] : [{ mode: 'drop_after' as const, n: dropEvery }]),
      ...(failEvery === undefined ? [] : [{ mode: 'error_before' as const, n: failEvery }]),
    ],
    ...(delay === undefined ? {} : { delayMs: delay, mix: [{ mode: 'slow' as const, percent: 100 }] }),
    ...(lag === undefined ? {} : { lookUpLagMs: lag }),
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
