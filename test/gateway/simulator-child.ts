import { startSimulator } from '../../src/gateway/simulator/simulator.ts';

/** A simulator in a process of its own, to be killed: `tsx simulator-child.ts JOURNAL`; prints its address. */
const simulator = await startSimulator({ port: 0, journal: process.argv[2] ?? '' });
process.stdout.write(`${simulator.url}\n`);
