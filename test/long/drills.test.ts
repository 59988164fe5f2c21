import { expect, test } from 'vitest';
import { runDrillProcess, runDrillWithout } from '../drills/drill-process.ts';
import { GUARDS } from '../drills/guards.ts';

const WITHIN_MS = 600_000;

test.each(GUARDS)('the drill $drill passes', { timeout: WITHIN_MS }, async ({ drill }) => {
  const { code, facts, differing } = await runDrillProcess(drill);
  expect(differing).toEqual([]);
  expect(facts.length).toBeGreaterThan(3);
  expect(code).toBe(0);
});

test.each(GUARDS)(
  'the drill $drill fails without its guard',
  { timeout: WITHIN_MS },
  async ({ drill, off, differs }) => {
    const { code, differing } = await runDrillWithout(drill, off);
    expect(differing).toContain(differs);
    expect(code).toBe(6);
  },
);
