import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import Table from 'cli-table3';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { Gateway } from '../../src/gateway/port.ts';
import { MODES, type Mode } from '../../src/gateway/simulator/settings.ts';
import type { EffectState } from '../../src/kernel/transitions.ts';
import { age, deliverAll, FAST, gatewayTo, servicesOf } from '../relay/harness.ts';
import { insertEffect, testBody, useTestLedger } from '../support/ledger-rows.ts';
import { useTestBank } from '../support/simulator.ts';
import { waitFor } from '../support/wait.ts';
import type { MatrixInput, Point } from './matrix-child.ts';

const POINTS = [
  'before_lease',
  'after_lease',
  'before_bytes',
  'after_bytes',
  'after_answer',
  'before_record',
  'after_record',
] as const satisfies readonly Point[];

/** Who finishes: the killed relay's own process, started again, or a relay that was there beside it. */
const RECOVERERS = ['same', 'other'] as const;

const ledger = useTestLedger(20);
const bank = useTestBank();
const gateways: Gateway[] = [];
/** What the table shows: by mode and point, `transfers state` of each recoverer. */
const cells = new Map<string, string[]>();
let total = 0;
let transfers = 0;
let doubles = 0;

afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close();
});
afterAll(() => {
  const table = new Table({ head: ['mode', ...POINTS], style: { head: [], border: [], compact: true } });
  for (const mode of MODES) {
    const shown = POINTS.map((point) => [...new Set(cells.get(`${mode} ${point}`))].join('\n'));
    table.push([mode, ...shown]);
  }
  const sum = `${total} of ${MODES.length * POINTS.length * RECOVERERS.length} combinations, ${transfers} transfers, ${doubles} double`;
  process.stdout.write(`${table.toString()}\ntransfers × state, of either recoverer; ${sum}\n`);
});

function startChild(input: Omit<MatrixInput, 'databaseUrl' | 'numbers'>): ChildProcess {
  const script = path.join(import.meta.dirname, 'matrix-child.ts');
  const whole: MatrixInput = { ...input, databaseUrl: ledger.url, numbers: MODES.length };
  return spawn(process.execPath, ['--import', 'tsx', script, JSON.stringify(whole)], { stdio: 'inherit' });
}

/** Whether the first try was known to the ledger as begun, and whether the counterparty can have seen it. */
function fateOf(mode: Mode, point: Point): EffectState {
  const isOrdinary = point === 'before_lease' || point === 'after_record';
  // Refused on a first send is a fact; after an unknown it proves nothing, and the next try is accepted.
  if (mode === 'refused') return isOrdinary ? 'failed' : 'succeeded';
  // The answer says succeeded; who has to look up sees what became of it since.
  const isLookedUp = point === 'after_bytes' || point === 'after_answer' || point === 'before_record';
  return mode === 'returned' && isLookedUp ? 'returned' : 'succeeded';
}

/** A key with one number a mode; its first try meets the mode, later ones are treated well. */
async function openKey(): Promise<{ key: string; numbers: Map<string, Mode>; url: string; posts: () => number }> {
  const key = await ledger.freshKey();
  await ledger.db.query('truncate public.fate');
  const numbers = new Map<string, Mode>();
  for (const mode of MODES) {
    numbers.set(await insertEffect(ledger.db, { key, subject: mode.replaceAll('_', '-') }), mode);
  }
  const modes = Object.fromEntries([...numbers].map(([number, mode]) => [number, [mode, 'ok'] as Mode[]]));
  const simulator = await bank.start({ numbers: modes, delayMs: 200, retryAfterSeconds: 0 });
  return { key, numbers, url: simulator.url, posts: () => simulator.counts().posts };
}

describe.each(RECOVERERS)('twelve modes, recovered by the %s relay', (recoverer) => {
  test.each(POINTS)(
    'after a kill %s: one transfer a number at most, the ledger’s amounts, the right end',
    { timeout: 90_000 },
    async (point) => {
      const { key, numbers, url, posts } = await openKey();
      const child = startChild({ gatewayUrl: url, key, point });
      const exit = once(child, 'exit');
      if (point === 'after_bytes') {
        await waitFor(() => posts() === MODES.length, { what: 'every request', timeoutMs: 30_000, everyMs: 2 });
        child.kill('SIGKILL');
      }
      expect(await exit).toEqual([null, 'SIGKILL']);
      await age(ledger, key, 0);

      const finished = recoverer === 'same' ? recoverHere(key, url) : recoverThere(key, url);
      const pending = [...numbers].find(([, mode]) => mode === 'pending')?.[0] ?? '';
      await waitFor(async () => (await settled(url, pending)).ok, {
        what: 'the pending one to be settled',
        timeoutMs: 60_000,
      });
      await finished;

      await expectRight(key, numbers, point);
    },
  );
});

async function recoverHere(key: string, gatewayUrl: string): Promise<void> {
  const child = startChild({ gatewayUrl, key, point: 'nowhere' });
  expect(await once(child, 'exit')).toEqual([0, null]);
}

async function recoverThere(key: string, url: string): Promise<void> {
  const gateway = gatewayTo(url, { timeoutMs: 4_000 });
  gateways.push(gateway);
  await deliverAll(servicesOf(ledger, gateway), key, { ...FAST, concurrency: MODES.length });
}

function settled(url: string, number: string): Promise<Response> {
  const body = JSON.stringify({ number, status: 'succeeded' });
  return fetch(`${url}/control/settle`, { method: 'POST', body });
}

async function expectRight(key: string, numbers: ReadonlyMap<string, Mode>, point: Point): Promise<void> {
  const { rows } = await ledger.db.query<{ number: string; state: EffectState; fates: string[] }>(
    `select number, state, array(select f.state from public.fate f where f.number = o.number order by 1) as fates
       from onceper.outbox o where key = $1`,
    [key],
  );
  const made = bank.entries().filter(({ decision }) => decision === 'executed');
  for (const { number, state, fates } of rows) {
    const mode = numbers.get(number) ?? 'ok';
    const own = made.filter((entry) => entry.number === number);
    doubles += Math.max(0, own.length - 1);
    expect([mode, point, state]).toEqual([mode, point, fateOf(mode, point)]);
    expect([mode, point, own.length]).toEqual([mode, point, state === 'failed' ? 0 : 1]);
    // Each end is posted once; a returned payout has left before it came back.
    expect(fates).toEqual(state === 'returned' ? ['returned', 'succeeded'] : [state]);
    for (const { transfer } of own) expect(transfer).toMatchObject(JSON.parse(testBody(number)) as object);
    const cell = `${mode} ${point}`;
    cells.set(cell, [...(cells.get(cell) ?? []), `${own.length} × ${state}`]);
    total += 1;
    transfers += own.length;
  }
  expect(rows).toHaveLength(MODES.length);
}
