import { expect, test } from 'vitest';
import { compareWithModel } from '../jobs/random-rules.ts';

test('five thousand random rules give each period its occasions as a small model does', () => {
  const seen = compareWithModel(5_000);
  for (const [how, count] of Object.entries(seen)) expect([how, count > 20]).toEqual([how, true]);
}, 600_000);
