import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { DRILLS } from '../../src/drills/all.ts';
import { type Drill, fact } from '../../src/drills/drill.ts';
import { runDrill } from '../../src/drills/run-drills.ts';
import { until } from '../../src/drills/until.ts';
import { runDrillProcess, runDrillWithout } from './drill-process.ts';
import { GUARDS } from './guards.ts';

const OPTIONS = {
  databaseUrl: null,
  temporalAddress: null,
  temporalCli: { explicit: null, path: '', cacheDir: '' },
  environment: {},
  taskQueue: 'drill',
  actor: 'test',
};

/** A drill that sets no stage. */
function drillOf(run: Drill['run']): Drill {
  return { name: 'example', fault: 'none', guard: 'none', run };
}

function verdictOf(run: Drill['run']) {
  return runDrill(drillOf(run), OPTIONS, () => undefined);
}

test('passes when every fact was seen as expected, and fails when one was not', async () => {
  const [one, other] = [fact('payments', 3, 3), fact('payments made twice', 0, 1)];
  expect((await verdictOf(() => Promise.resolve([one]))).ok).toBe(true);
  expect((await verdictOf(() => Promise.resolve([one, other]))).ok).toBe(false);
});

test('does not pass without a fact: it has shown nothing', async () => {
  expect((await verdictOf(() => Promise.resolve([]))).ok).toBe(false);
});

test('fails when it waits in vain, and says for what', async () => {
  const verdict = await verdictOf(async () => {
    await until('the takeover', () => Promise.resolve(false), 1, 1);
    return [fact('payments', 3, 3)];
  });
  expect(verdict.ok).toBe(false);
  expect(verdict.facts).toEqual([{ what: 'waited 0 s for the takeover', expected: 'in time', seen: 'in vain' }]);
});

test('gives no verdict when the drill itself is at fault, and leaves no folder behind', async () => {
  let folder = '';
  const thrown = verdictOf((tools) => {
    folder = tools.folder;
    expect(existsSync(folder)).toBe(true);
    return Promise.reject(new Error('the drill is wrong'));
  });
  await expect(thrown).rejects.toThrow('the drill is wrong');
  expect(existsSync(folder)).toBe(false);
});

test('every drill has a guard that a test takes away', () => {
  expect(GUARDS.map(({ drill }) => drill).toSorted()).toEqual(DRILLS.map(({ name }) => name).toSorted());
});

test('uuid-per-retry passes as a person types it, and fails when our numbers change with each try', async () => {
  const guard = GUARDS.find(({ drill }) => drill === 'uuid-per-retry');
  const [sound, without] = await Promise.all([
    runDrillProcess('uuid-per-retry'),
    runDrillWithout('uuid-per-retry', guard?.off ?? []),
  ]);
  expect(sound).toMatchObject({ code: 0, differing: [] });
  expect(without.code).toBe(6);
  expect(without.differing).toContain('ours: merchants paid twice');
}, 120_000);
