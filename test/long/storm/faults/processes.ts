import type { Field } from '../field.ts';
import { pause } from '../pause.ts';
import type { Kind, Lane } from './fault.ts';

const WORKERS = ['worker-1', 'worker-2'] as const;
const RELAYS = ['relay-1', 'relay-2'] as const;

function postOf({ posts }: Field, lane: Lane) {
  if (lane in posts) return posts[lane as keyof typeof posts];
  throw new Error(`${lane} is no post`);
}

/** Ends the process of the lane, and waits until its successor works. */
async function end(field: Field, lane: Lane, signal: 'SIGKILL' | 'SIGTERM'): Promise<boolean> {
  const post = postOf(field, lane);
  const before = post.starts();
  if (!(await post.signal(signal))) return false;
  for (let waited = 0; post.starts() === before && waited < 100; waited += 1) await pause(100);
  return post.starts() > before;
}

/** Stops the process in its tracks, longer than any lease of its, and lets it go on. */
async function standStill(field: Field, lane: Lane, ms: number): Promise<boolean> {
  const post = postOf(field, lane);
  if (!(await post.signal('SIGSTOP'))) return false;
  await pause(ms);
  post.wake();
  return true;
}

/** Its successor has something else in its environment, and the one after that has not. */
async function changed(field: Field, lane: Lane, name: string, value: string): Promise<boolean> {
  const { changes } = postOf(field, lane);
  if (name in changes) delete changes[name];
  else changes[name] = value;
  return end(field, lane, 'SIGTERM');
}

/** What befalls processes of the product, and the counterparty's. */
export const PROCESS_FAULTS: readonly Kind[] = [
  { name: 'worker killed', lanes: WORKERS, weight: 5, isShort: true, strike: (f, _, lane) => end(f, lane, 'SIGKILL') },
  {
    name: 'worker asked to end',
    lanes: WORKERS,
    weight: 3,
    isShort: true,
    strike: (f, _, lane) => end(f, lane, 'SIGTERM'),
  },
  {
    name: 'worker stands still past its lease',
    lanes: WORKERS,
    weight: 4,
    isShort: true,
    strike: (f, draw, lane) => standStill(f, lane, draw.between(5_500, 7_500)),
  },
  {
    name: 'another release beside this one',
    lanes: [...WORKERS, ...RELAYS],
    weight: 2,
    strike: (f, _, lane) => changed(f, lane, 'ONCEPER_RELEASE', 'next'),
  },
  {
    name: 'a heap that is too small',
    lanes: WORKERS,
    weight: 1,
    strike: (f, _, lane) => changed(f, lane, 'NODE_OPTIONS', '--max-old-space-size=72'),
  },
  { name: 'relay killed', lanes: RELAYS, weight: 6, isShort: true, strike: (f, _, lane) => end(f, lane, 'SIGKILL') },
  { name: 'relay asked to end', lanes: RELAYS, weight: 3, strike: (f, _, lane) => end(f, lane, 'SIGTERM') },
  {
    name: 'relay stands still',
    lanes: RELAYS,
    weight: 5,
    isShort: true,
    strike: (f, draw, lane) => standStill(f, lane, draw.between(1_000, 4_500)),
  },
  {
    name: 'webhooks killed',
    lanes: ['webhooks'],
    weight: 3,
    isShort: true,
    strike: (f, _, lane) => end(f, lane, 'SIGKILL'),
  },
  {
    name: 'counterparty killed',
    lanes: ['gateway'],
    weight: 4,
    isShort: true,
    strike: (f, _, lane) => end(f, lane, 'SIGKILL'),
  },
];
