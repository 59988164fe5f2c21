import { transaction } from '../store/database.ts';
import { clearDelivering, keysWithoutWork } from '../store/outbox-clear.ts';
import { takeDueEffects, takeProbe } from '../store/outbox-take.ts';
import { listenDelivering } from '../store/wake.ts';
import { createAlarm } from './alarm.ts';
import { count, faultEvent, noCounts, type RelayCounts } from './events.ts';
import { freezeRewound, Rewound } from './memory.ts';
import { planRelay, type RelayOptions, type RelayPlan, type RelayServices } from './plan.ts';
import { createPump, type Pump } from './pump.ts';

const SHORT = { statementTimeout: 5_000, lockTimeout: 1_000, idleInTransactionTimeout: 5_000 };
const TAKE = { ...SHORT, label: 'take', byIndex: true };
const CLEAR = { ...SHORT, label: 'clear' };

/**
 * Delivers one batch: takes due effects of delivering actions in one short transaction, performs them outside any, records
 * what came of them, and clears `delivering` of keys in which nothing is left to do. At most one transfer a number comes of
 * it, whatever dies when and however many relays run. Returns what it did; a fault of the database is an event, and what it
 * left undone is due again when its lease ends.
 * @throws OnceperError `gateway_terms`.
 */
export async function relayOnce(services: RelayServices, options: RelayOptions = {}): Promise<RelayCounts> {
  const { plan, counts } = countedPlan(services, options);
  const pump = createPump(services, plan, new AbortController().signal);
  await takeInto(services, plan, pump);
  await pump.empty();
  await clearFinished(services, plan);
  return counts;
}

/**
 * Delivers until `signal` aborts; then takes nothing more, gives back what has not begun, finishes the calls in flight
 * within their time-outs and a margin, records them and returns. A fault of the database is an event and a pause.
 * @throws OnceperError `gateway_terms`.
 */
export async function runRelay(
  services: RelayServices,
  options: RelayOptions & { readonly signal: AbortSignal },
): Promise<RelayCounts> {
  const { plan, counts } = countedPlan(services, options);
  const hardStop = new AbortController();
  const pump = createPump(services, plan, hardStop.signal);
  let taking: Promise<Taken> = Promise.resolve(NOTHING);
  const stop = () => {
    plan.emit({ kind: 'draining', inHand: pump.inHand() });
    pump.stop(taking);
  };
  options.signal.addEventListener('abort', stop, { once: true });
  if (options.signal.aborted) stop();
  const alarm = createAlarm();
  const listening = listenDelivering(services.db, () => alarm.ring(), options.signal);
  let poll = plan.pollMs.first;
  while (!options.signal.aborted) {
    await pump.roomy();
    if (options.signal.aborted) break;
    taking = takeInto(services, plan, pump);
    const { count: taken, probeInMs } = await taking;
    if (taken > 0) {
      poll = plan.pollMs.first;
      continue;
    }
    if (pump.isQuiet()) {
      await clearFinished(services, plan);
      plan.emit({ kind: 'idle' });
    }
    const nap = probeInMs === null ? poll : Math.max(poll, Math.min(PAUSED_POLL_MS, probeInMs));
    poll = (await alarm.nap(nap, options.signal)) ? plan.pollMs.first : Math.min(plan.pollMs.cap, poll * 2);
  }
  await drained(pump, plan, hardStop);
  await listening;
  return counts;
}

function countedPlan(services: RelayServices, options: RelayOptions): { plan: RelayPlan; counts: RelayCounts } {
  const given = planRelay(services, options);
  const counts = noCounts();
  const plan: RelayPlan = {
    ...given,
    emit(event) {
      count(counts, event);
      given.emit(event);
    },
  };
  return { plan, counts };
}

/** How many effects were taken, and when a paused counterparty is to be tried. */
interface Taken {
  readonly count: number;
  readonly probeInMs: number | null;
}
const NOTHING: Taken = { count: 0, probeInMs: null };

/** A take during a pause walks all that waits, for what is told to others among it: seldom, a month can be a million rows. */
const PAUSED_POLL_MS = 5_000;

async function takeInto(services: RelayServices, plan: RelayPlan, pump: Pump): Promise<Taken> {
  // Measured from before the take: the lease began no earlier, so by this clock it ends no later.
  const until = performance.now() + plan.leaseMs;
  try {
    const jobs = services.jobs.ids;
    const { effects, probeInMs } = await transaction(services.db, TAKE, async (tx) => {
      const taken = await takeDueEffects(tx, { limit: plan.batch, leaseMs: plan.leaseMs, jobs });
      plan.memory.see(taken.found);
      if (taken.probeInMs === null || taken.probeInMs > 0) return taken;
      const probe = await takeProbe(tx, { leaseMs: plan.leaseMs, jobs, probe: plan.probe });
      return probe === null ? taken : { ...taken, effects: [...taken.effects, probe] };
    });
    if (effects.length > 0) plan.emit({ kind: 'taken', count: effects.length });
    pump.offer(effects, until);
    return { count: effects.length, probeInMs };
  } catch (error) {
    if (error instanceof Rewound) await freeze(services, plan, error);
    else plan.emit(faultEvent('take', error));
    return NOTHING;
  }
}

/** What was taken is rolled back. Until the freeze is committed every further take meets the same refusal. */
async function freeze({ db }: RelayServices, { memory, release, emit }: RelayPlan, rewound: Rewound): Promise<void> {
  const { reason, found } = rewound;
  try {
    await freezeRewound(db, reason, release);
    memory.adopt(found);
    emit({ kind: 'frozen', reason });
  } catch (error) {
    emit(faultEvent('freeze', error));
  }
}

async function clearFinished(services: RelayServices, plan: RelayPlan): Promise<void> {
  try {
    for (const key of await keysWithoutWork(services.db, services.jobs.ids)) {
      const cleared = await transaction(services.db, CLEAR, (tx) => clearDelivering(tx, key));
      if (cleared) plan.emit({ kind: 'cleared', key });
    }
  } catch (error) {
    plan.emit(faultEvent('clear', error));
  }
}

/** Past the grace the calls in flight are cut: their effects are recorded as unknown, and looked up by the next relay. */
async function drained(pump: Pump, plan: RelayPlan, hardStop: AbortController): Promise<void> {
  const timer = setTimeout(() => hardStop.abort(), Math.max(plan.callMs, plan.noticeMs));
  await pump.empty();
  clearTimeout(timer);
}
