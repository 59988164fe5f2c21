import { afterEach, expect, test } from 'vitest';
import { checkLedger } from '../../src/ops/doctor-ledger.ts';
import { expectedPeriods } from '../../src/ops/periods.ts';
import { createStory, type Story } from './story.ts';

let story: Story;
afterEach(() => story.drop());

async function detail(): Promise<string | undefined> {
  const rows = await checkLedger(story.db, story.services.registry);
  return rows.find(({ check }) => check === 'periods of tiny')?.detail;
}

/** The months that have ended, from the tiny job's first. */
async function ended(): Promise<string[]> {
  const { periods } = await expectedPeriods(story.db, story.services.registry, { job: 'tiny' });
  return periods.map(({ period }) => period);
}

test('few periods that miss are listed, so that a gap between them is no third', async () => {
  story = await createStory({ rule: { first: '2026-01' } });
  const months = await ended();
  const [lost, kept, alsoLost] = months.slice(-3);
  for (const month of months) if (month !== lost && month !== alsoLost) await story.settle(month);
  expect(kept).toBeDefined();
  expect(await detail()).toBe(`2 missing: ${lost}, ${alsoLost}`);
});

test('of many that follow one another the range is named', async () => {
  story = await createStory({ rule: { first: '2024-01' } });
  const months = await ended();
  expect(await detail()).toBe(`${months.length} missing: 2024-01 to ${months.at(-1)}`);
});
