/** PostgreSQL and Temporal for one machine, no Docker: what the commands `up`, `down` and `demo` are made of. */
export { upDetached } from './detached.ts';
export { down } from './down.ts';
export type { RunningServers } from './server-state.ts';
export { runningServers } from './server-state.ts';
export type { StartOptions } from './start-servers.ts';
export { DEFAULT_PORTS } from './start-servers.ts';
export type { Up } from './up.ts';
export { up } from './up.ts';
