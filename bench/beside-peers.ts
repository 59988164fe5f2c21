/**
 * The product, the statement by hand and the peers on the same work, by turns: new items first, then the same items asked again. A
 * peer's process is open only for its own rounds, as most of them poll.
 */
import type { Database } from '../src/store/database.ts';
import type { Contest, Entrant } from './contest.ts';
import { bareSelect, byHand, byOnce, inBatches, settleDown } from './items.ts';
import type { Section, Way } from './section.ts';
import { atOnce, keysOf } from './work.ts';

/** Enough that each of sixteen connections has worked, and no more than half of what a slow peer does in a round. */
const WARM_UP = 32;

/** How much of it. */
export interface PeerExtent {
  readonly isQuick: boolean;
  /** Of the product and its floor; each peer has its own number. */
  readonly items: number;
  readonly rounds: number;
  readonly peerRounds: number;
}

/** New items of the product and of everybody. */
export function newBesidePeers(db: Database, contest: Contest, extent: PeerExtent): Section {
  const own = (name: string, mark: string, perform: (keys: readonly string[]) => Promise<void>): Way => ({
    name,
    perform: (round, items) => perform(keysOf(`${mark}-${round}`, items)),
    after: (round, items) => confirm(db, `${mark}-${round}`, items),
  });
  return {
    name: 'new items, beside peers',
    work: 'an idempotency record, a business row and an outgoing row (or what the peer has in its place); 16 at a time',
    floor: 'one statement by hand',
    sizes: [extent.items],
    rounds: extent.rounds,
    ways: [
      own('one statement by hand', 'sql', (keys) => atOnce(keys, byHand(db))),
      own('once', 'one', (keys) => atOnce(keys, byOnce(db))),
      own('onceMany of 1,000, one connection', 'lot', (keys) => inBatches(db, keys, 'done')),
      ...contest.entrants.map((peer) => wayOf(db, contest, extent, peer, 'perform')),
    ],
  };
}

/** The items of `newBesidePeers`, asked again in the same rounds. */
export async function againBesidePeers(db: Database, contest: Contest, extent: PeerExtent): Promise<Section> {
  await settleDown(db);
  const failed = new Set(contest.skipped.map(({ name }) => name));
  return {
    name: 'the same items again, beside peers',
    work: 'an item that is done, asked for again; 16 at a time',
    floor: 'a bare SELECT by key',
    sizes: [extent.items],
    rounds: extent.rounds,
    ways: [
      {
        name: 'a bare SELECT by key',
        perform: (round, items) => atOnce(keysOf(`one-${round}`, items), bareSelect(db)),
      },
      { name: 'once', perform: (round, items) => atOnce(keysOf(`one-${round}`, items), byOnce(db)) },
      {
        name: 'onceMany of 1,000, one connection',
        perform: (round, items) => inBatches(db, keysOf(`lot-${round}`, items), 'duplicate'),
      },
      ...contest.entrants
        .filter(({ name }) => !failed.has(name))
        .map((peer) => wayOf(db, contest, extent, peer, 'again')),
    ],
  };
}

function wayOf(db: Database, contest: Contest, extent: PeerExtent, peer: Entrant, verb: 'perform' | 'again'): Way {
  const mostItems = peer.items[extent.isQuick ? 0 : 1];
  const warmUp = Math.min(WARM_UP, mostItems / 2);
  return {
    name: peer.name,
    mostItems,
    mostRounds: extent.peerRounds,
    async before(round) {
      await peer.process.ask({ verb: 'open' });
      // The product's connections are open before a round too.
      await peer.process.ask({ verb: 'perform', round: `${peer.mark}-w${verb}-${round}`, items: warmUp });
    },
    perform: async (round, items) => void (await peer.process.ask({ verb, round: `${peer.mark}-${round}`, items })),
    async after(round, items) {
      await peer.process.ask({ verb: 'close' });
      await confirm(db, `${peer.mark}-${round}`, items);
    },
    async onFailure(error) {
      const reason = `failed in a round: ${error instanceof Error ? error.message : String(error)}`;
      contest.skipped.push({ name: peer.name, reason });
      // It would go on polling beside the others.
      await peer.process.stop();
    },
  };
}

/** A comparison of speeds is worth nothing unless everybody wrote the same rows, each once. */
async function confirm(db: Database, round: string, items: number): Promise<void> {
  const { rows } = await db.query<{ paid: number; sent: number }>(
    `select (select count(*) from pay where key between $1 and $2)::int4 as paid,
            (select count(*) from send where key collate "C" between $1 and $2)::int4 as sent`,
    [`pay:${round}:`, `pay:${round}:~`],
  );
  const [found] = rows;
  if (found?.paid === items && found.sent === items) return;
  throw new Error(`of ${items} items ${found?.paid} business rows and ${found?.sent} outgoing rows were written`);
}
