export { period } from './period.ts';
export { tick } from './tick.ts';
