import Table from 'cli-table3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createKilling, type Killing, MOMENTS, type Outcome, type Point } from '../store/killing.ts';

let killing: Killing;
const outcomes: Outcome[] = [];
beforeAll(async () => {
  killing = await createKilling();
});
afterAll(async () => {
  await killing.end();
  const table = new Table({ head: ['path', 'statement', ...MOMENTS], style: { head: [], border: [], compact: true } });
  const numbers = [...new Set(outcomes.map(({ point }) => point.number))].toSorted((one, other) => one - other);
  for (const number of numbers) {
    const cells = outcomes.filter(({ point }) => point.number === number);
    const { path = '', text = '' } = cells[0]?.point ?? {};
    const told = MOMENTS.map((moment) => cells.find(({ point }) => point.moment === moment)?.attempts ?? 'wrong');
    table.push([path, text.slice(0, 60), ...told]);
  }
  process.stdout.write(
    `${table.toString()}\nhow the attempts ended; ${outcomes.length} kills, each with one effect a number\n`,
  );
});

test('a process killed at every statement of open, claim, slice and close leaves one effect a number, and true attempts', async () => {
  const points = await killing.points();
  const wrong: { readonly point: Point; readonly error: unknown }[] = [];
  const left = [...points];
  // The machine's two cores carry a few processes at once; most of a kill is waiting for its lease to end.
  const hands = Array.from({ length: 4 }, async () => {
    for (let point = left.shift(); point !== undefined; point = left.shift()) {
      const at = point;
      await killing.kill(at).then(
        (outcome) => void outcomes.push(outcome),
        (error: unknown) => void wrong.push({ point: at, error }),
      );
    }
  });
  await Promise.all(hands);
  expect(wrong).toEqual([]);
  expect(outcomes).toHaveLength(points.length);
}, 1_200_000);
