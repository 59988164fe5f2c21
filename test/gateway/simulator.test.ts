import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createHttpGateway } from '../../src/gateway/http.ts';
import type { Gateway } from '../../src/gateway/port.ts';
import { MODES, type StatedSettings } from '../../src/gateway/simulator/settings.ts';
import { type Simulator, startSimulator } from '../../src/gateway/simulator/simulator.ts';
import { testBody } from '../support/ledger-rows.ts';
import { useTestBank } from '../support/simulator.ts';

const bank = useTestBank();
const open: Gateway[] = [];

beforeEach(() => void open.splice(0));
afterEach(async () => {
  for (const gateway of open) await gateway.close();
});

function client(url: string, timeoutMs = 5_000): Gateway {
  const gateway = createHttpGateway({ url, keyWindowMs: 86_400_000, visibilityDelayMs: 0, timeoutMs });
  open.push(gateway);
  return gateway;
}

async function startWith(settings: StatedSettings = {}): Promise<{ simulator: Simulator; gateway: Gateway }> {
  const simulator = await bank.start(settings);
  return { simulator, gateway: client(simulator.url) };
}

async function control(simulator: Simulator, method: string, route: string, body?: unknown): Promise<Response> {
  return fetch(`${simulator.url}/control/${route}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

const decisions = () => bank.entries().map((entry) => `${entry.seq} ${entry.number} ${entry.decision}`);
const send = (gateway: Gateway, number: string, amount = '1250') => gateway.send(number, testBody(number, amount));

describe('the contract', () => {
  test('a number makes one transfer, however often it is sent, and the journal says so before the answer', async () => {
    const { gateway } = await startWith();
    const first = await send(gateway, 'n-1');
    expect(first).toMatchObject({ kind: 'accepted', status: 201, transfer: { status: 'succeeded', reference: 'n-1' } });
    expect(decisions()).toEqual(['1 n-1 executed']);
    expect(await send(gateway, 'n-1')).toEqual(first);
    expect(decisions()).toEqual(['1 n-1 executed', '2 n-1 replayed']);
    expect(await gateway.lookUp('n-1')).toMatchObject({ kind: 'found', transfers: [{ id: 'tr_1' }] });
    expect(await gateway.lookUp('n-2')).toMatchObject({ kind: 'not_found' });
  });

  test('a number under another body, to the byte, is refused', async () => {
    const { gateway } = await startWith();
    await send(gateway, 'n-1');
    expect(await send(gateway, 'n-1', '1251')).toMatchObject({ kind: 'key_reused' });
    expect(await gateway.send('n-1', `${testBody('n-1')} `)).toMatchObject({ kind: 'key_reused' });
  });

  test('a hundred sends of one number at once make one transfer; the others are in flight or repeated', async () => {
    const { gateway } = await startWith();
    const answers = await Promise.all(Array.from({ length: 100 }, () => send(gateway, 'n-1')));
    expect(new Set(answers.map((answer) => answer.kind))).not.toContain('unknown');
    expect(bank.executed()).toEqual(new Map([['n-1', 1]]));
  });

  test('the statement pages through a range in the order of booking', async () => {
    const { gateway } = await startWith();
    for (const number of ['n-1', 'n-2', 'n-3']) await send(gateway, number);
    const range = { from: '2000-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z', limit: 2 };
    const first = await gateway.list(range);
    expect(first.transfers.map((transfer) => transfer.reference)).toEqual(['n-1', 'n-2']);
    const last = await gateway.list({ ...range, after: first.transfers.at(-1)?.id ?? '' });
    expect(last).toMatchObject({ transfers: [{ reference: 'n-3' }], hasMore: false });
    expect(await gateway.list({ ...range, to: range.from })).toEqual({ transfers: [], hasMore: false });
  });

  test('a transfer that names another number, or no number, is refused', async () => {
    const { simulator, gateway } = await startWith();
    expect(await gateway.send('n-1', testBody('n-2'))).toMatchObject({ kind: 'barred', code: 'malformed_transfer' });
    const bare = await fetch(`${simulator.url}/v1/transfers`, { method: 'POST', body: testBody('n-1') });
    expect([bare.status, await bare.json()]).toMatchObject([400, { error: { code: 'idempotency_key_missing' } }]);
    expect(bank.executed()).toEqual(new Map());
  });
});

describe('modes', () => {
  const answers = {
    ok: [{ kind: 'accepted', status: 201 }, true],
    slow: [{ kind: 'accepted', status: 201 }, true],
    drop_before: [{ kind: 'unknown', status: null }, false],
    drop_after: [{ kind: 'unknown', status: null }, true],
    cut: [{ kind: 'unknown', status: 201 }, true],
    in_flight: [{ kind: 'in_flight' }, false],
    error_before: [{ kind: 'unknown', status: 500 }, false],
    error_after: [{ kind: 'unknown', status: 500 }, true],
    busy: [{ kind: 'busy', retryAfterMs: 2_000 }, false],
    refused: [{ kind: 'refused', status: 400, code: 'account_blocked' }, false],
    pending: [{ kind: 'accepted', status: 202, transfer: { status: 'pending' } }, true],
    returned: [{ kind: 'accepted', status: 201, transfer: { status: 'succeeded' } }, true],
  } as const;

  test.each(MODES)('%s answers and acts as it says', async (mode) => {
    const [answer, acts] = answers[mode];
    const { gateway } = await startWith({
      numbers: { 'n-1': [mode] },
      delayMs: 20,
      retryAfterSeconds: 2,
      refusal: { status: 400, code: 'account_blocked' },
    });
    expect(await send(gateway, 'n-1')).toMatchObject(answer);
    expect(bank.executed().get('n-1') ?? 0).toBe(acts ? 1 : 0);
    expect(await gateway.lookUp('n-1')).toMatchObject({ kind: acts ? 'found' : 'not_found' });
  });

  test('a 500 after acting is repeated from memory, and look-ups find the transfer', async () => {
    const { gateway } = await startWith({ numbers: { 'n-1': ['error_after', 'ok'] } });
    await send(gateway, 'n-1');
    expect(await send(gateway, 'n-1')).toMatchObject({ kind: 'unknown', status: 500 });
    expect(bank.executed().get('n-1')).toBe(1);
  });

  test('a slow number is in flight meanwhile and acts although its client has gone', async () => {
    const { simulator } = await startWith({ numbers: { 'n-1': ['slow', 'ok'] }, delayMs: 300 });
    const hasty = client(simulator.url, 100);
    expect(await send(hasty, 'n-1')).toMatchObject({ kind: 'unknown', code: 'timeout' });
    expect(await send(hasty, 'n-1')).toMatchObject({ kind: 'in_flight' });
    await expect.poll(() => bank.executed().get('n-1')).toBe(1);
  });

  test('every n-th POST and percentages mix, the same way in every process', async () => {
    const settings: StatedSettings = {
      every: [{ mode: 'drop_after', n: 5 }],
      mix: [{ mode: 'error_before', percent: 30 }],
    };
    const { gateway } = await startWith(settings);
    const kinds: string[] = [];
    for (let at = 1; at <= 100; at += 1) kinds.push((await send(gateway, `n-${at}`)).kind);
    const before = bank.entries().filter((entry) => entry.decision === 'refused').length;
    expect(kinds.filter((_kind, at) => (at + 1) % 5 === 0)).toEqual(Array.from({ length: 20 }, () => 'unknown'));
    expect(before).toBeGreaterThan(12);
    expect(before).toBeLessThan(40);
  });

  test('Retry-After comes as a date too', async () => {
    const { gateway } = await startWith({
      numbers: { 'n-1': ['busy'] },
      retryAfterSeconds: 30,
      retryAfterForm: 'date',
    });
    const answer = await send(gateway, 'n-1');
    expect(answer.kind === 'busy' && answer.retryAfterMs).toBeGreaterThan(28_000);
  });

  test('a number can be forgotten, a look-up can lag, and look-ups can fail', async () => {
    const { simulator, gateway } = await startWith({ forgetAfterMs: 0, lookUpLagMs: 3_600_000 });
    await send(gateway, 'n-1');
    expect(await gateway.lookUp('n-1')).toMatchObject({ kind: 'not_found' });
    await send(gateway, 'n-1');
    expect(bank.executed().get('n-1')).toBe(2);
    await control(simulator, 'PUT', 'modes', { lookUpErrors: 100 });
    expect(await gateway.lookUp('n-1')).toMatchObject({ kind: 'unknown', status: 500 });
  });
});

describe('control', () => {
  test('changes and shows the modes, and refuses what it does not know', async () => {
    const { simulator, gateway } = await startWith();
    const changed = await control(simulator, 'PUT', 'modes', { mix: [{ mode: 'busy', percent: 100 }] });
    expect(changed.status).toBe(200);
    expect(await send(gateway, 'n-1')).toMatchObject({ kind: 'busy' });
    for (const wrong of [
      { mixes: [] },
      {
        mix: [
          { mode: 'ok', percent: 60 },
          { mode: 'busy', percent: 60 },
        ],
      },
      'ok',
    ]) {
      expect((await control(simulator, 'PUT', 'modes', wrong)).status).toBe(400);
    }
    expect(await (await control(simulator, 'GET', 'modes')).json()).toMatchObject({ mix: [{ mode: 'busy' }] });
  });

  test('settles a pending transfer', async () => {
    const { simulator, gateway } = await startWith({ numbers: { 'n-1': ['pending'] } });
    await send(gateway, 'n-1');
    expect((await control(simulator, 'POST', 'settle', { number: 'n-1', status: 'failed' })).status).toBe(200);
    expect(await gateway.lookUp('n-1')).toMatchObject({ transfers: [{ status: 'failed' }] });
    expect((await control(simulator, 'POST', 'settle', { number: 'n-2', status: 'failed' })).status).toBe(404);
  });
});

describe('the journal', () => {
  test('is the memory of the next start: numbers, bodies, settled states and the sequence', async () => {
    const first = await startWith({ numbers: { 'n-2': ['pending'] } });
    await send(first.gateway, 'n-1');
    await send(first.gateway, 'n-2');
    await control(first.simulator, 'POST', 'settle', { number: 'n-2', status: 'succeeded' });
    await first.simulator.stop();
    const { simulator, gateway } = await startWith();
    expect(simulator.tornBytes).toBe(0);
    expect(await send(gateway, 'n-1')).toMatchObject({ kind: 'accepted', transfer: { id: 'tr_1' } });
    expect(await send(gateway, 'n-1', '9')).toMatchObject({ kind: 'key_reused' });
    expect(await gateway.lookUp('n-2')).toMatchObject({ transfers: [{ id: 'tr_2', status: 'succeeded' }] });
    expect(bank.entries().map((entry) => entry.seq)).toEqual([1, 2, 3, 4, 5]);
  });

  test('a torn last line is cut off and reported; a broken line before it stops the start', async () => {
    const { simulator, gateway } = await startWith();
    await send(gateway, 'n-1');
    await simulator.stop();
    appendFileSync(bank.journal, '{"seq":2,"at":');
    const again = await startWith();
    expect(again.simulator.tornBytes).toBe(14);
    await send(again.gateway, 'n-2');
    expect(decisions()).toEqual(['1 n-1 executed', '2 n-2 executed']);
    await again.simulator.stop();
    appendFileSync(bank.journal, 'not a line\n');
    const start = startSimulator({ port: 0, journal: bank.journal });
    await expect(start).rejects.toMatchObject({ code: 'journal_corrupt', message: expect.stringContaining('line 3') });
  });

  test('kill -9 in the middle of a storm loses nothing that was answered', async () => {
    const script = path.join(import.meta.dirname, 'simulator-child.ts');
    const child = spawn(process.execPath, ['--import', 'tsx', script, bank.journal], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const gateway = client(line.toString().trim());
    const answered: string[] = [];
    let next = 0;
    const sender = async () => {
      for (let isUp = true; isUp; ) {
        next += 1;
        const number = `n-${next}`;
        isUp = (await send(gateway, number)).kind === 'accepted';
        if (isUp) answered.push(number);
        if (answered.length === 500) child.kill('SIGKILL');
      }
    };
    await Promise.all(Array.from({ length: 16 }, sender));
    const restarted = await startWith();
    for (const number of answered) {
      expect(await restarted.gateway.lookUp(number)).toMatchObject({ kind: 'found' });
    }
    expect([...bank.executed().values()].every((times) => times === 1)).toBe(true);
    expect(readFileSync(bank.journal, 'utf8').endsWith('\n')).toBe(true);
  });
});

test('a taken port and settings that mean nothing stop the start by name', async () => {
  const { simulator } = await startWith();
  const taken = startSimulator({ port: simulator.port, journal: bank.journal });
  await expect(taken).rejects.toMatchObject({ code: 'port_taken' });
  const settings = { mix: [{ mode: 'ok' as const, percent: 101 }] };
  const wrong = startSimulator({ port: 0, journal: bank.journal, settings });
  await expect(wrong).rejects.toMatchObject({ code: 'simulator_settings' });
});
