export { backfill } from './backfill.ts';
export { delivery } from './delivery.ts';
export { epoch } from './epoch.ts';
export { expect } from './expect.ts';
export { period } from './period.ts';
export { tick } from './tick.ts';
