import { RECEIVER_CONNECTIONS } from '../gateway/receivers.ts';
import type { Adapters } from '../gateway/routes.ts';
import type { Registry } from '../jobs/registry.ts';
import {
  type BackOff,
  checkTerms,
  DELIVERY_DEFAULTS,
  type DeliveryBudget,
  type DeliveryTerms,
} from '../kernel/delivery.ts';
import { PROBE_DEFAULTS, type ProbeTerms } from '../kernel/destination.ts';
import { NOTICE_DEFAULTS, type NoticeTerms } from '../kernel/notice.ts';
import type { Identity } from '../kernel/rewind.ts';
import type { Database } from '../store/database.ts';
import type { RelayEvent } from './events.ts';
import { createMemory, type Memory } from './memory.ts';
import { createPace, type Pace } from './pace.ts';

/** What a relay works with. A pool of two connections suffices: none is held while the counterparty is asked. */
export interface RelayServices extends Adapters {
  readonly db: Database;
  readonly jobs: Registry;
}

/** Everything is optional; milliseconds. */
export interface RelayOptions {
  /** Effects of one take. Small takes cost a commit each; large ones wait longer in hand, and return by look-up after a kill. */
  readonly batch?: number;
  /** Calls in flight. More than the gateway's connections would only queue inside their time-out. */
  readonly concurrency?: number;
  /** Calls a second that the counterparty allows this relay; without it as many as its connections carry. */
  readonly callsPerSecond?: number | null;
  /** How long a taken effect is ours. Also how long a killed relay's effects wait for the next one. */
  readonly leaseMs?: number;
  readonly budget?: Partial<DeliveryBudget>;
  readonly backOff?: Partial<BackOff>;
  /** When a paused counterparty is tried again. */
  readonly probe?: Partial<ProbeTerms>;
  /** How long it goes on with what is told to receivers of webhooks. */
  readonly notices?: Partial<NoticeTerms>;
  /** Messages a second that each receiver allows this relay; without it as many as its connections carry. */
  readonly noticesPerSecond?: number | null;
  /** How long recorded answers are kept while the database is away; afterwards look-ups find them again. */
  readonly recordPatienceMs?: number;
  /** How long an idle relay waits for a message before it asks: at first, and at most after doubling. */
  readonly pollMs?: { readonly first: number; readonly cap: number };
  readonly random?: () => number;
  /** Who the database was remembered to be, outside of it; without it the relay remembers from its first take on. */
  readonly remembered?: Identity | null;
  /** The deployed build, by which a freeze is signed. */
  readonly release?: string;
  readonly onEvent?: (event: RelayEvent) => void;
}

/** Options with nothing left open. */
export interface RelayPlan {
  readonly batch: number;
  readonly concurrency: { readonly transfers: number; readonly notices: number };
  readonly leaseMs: number;
  /** What must be left of a lease for a call to begin: the call's own time-out, and time to record its answer. */
  readonly callMs: number;
  /** The same of a receiver of webhooks. */
  readonly noticeMs: number;
  readonly recordPatienceMs: number;
  readonly pollMs: { readonly first: number; readonly cap: number };
  readonly pace: Pace;
  /** The pace of one receiver, by its name. */
  readonly noticePace: (receiver: string) => Pace;
  readonly terms: DeliveryTerms;
  readonly notices: NoticeTerms;
  readonly probe: ProbeTerms;
  readonly random: () => number;
  readonly memory: Memory;
  readonly release: string;
  readonly emit: (event: RelayEvent) => void;
}

/**
 * An idle relay asks four times a second at first and once a second in the end: a poll without work costs 1 ms. A close wakes
 * it at once; the poll is the truth, since a message that nobody heard is not repeated.
 */
const POLL_MS = { first: 250, cap: 1_000 };

const RECORD_MARGIN_MS = 2_000;

/** A lease that is no longer than a call would have every effect given back before it begins. */
const MIN_WAIT_MS = 1_000;

/**
 * Fills in the defaults from the counterparty's properties: a lease of two calls lets an effect wait for a whole slow one
 * before its own begins.
 * @throws OnceperError `gateway_terms` when the counterparty's promises leave no moment for a safe re-send.
 */
export function planRelay(services: RelayServices, options: RelayOptions): RelayPlan {
  const { properties } = services.gateway;
  const terms: DeliveryTerms = {
    ...properties,
    budget: { ...DELIVERY_DEFAULTS.budget, ...options.budget },
    backOff: { ...DELIVERY_DEFAULTS.backOff, ...options.backOff },
  };
  checkTerms(terms);
  const callMs = properties.timeoutMs + RECORD_MARGIN_MS;
  const noticeMs = (services.receivers?.timeoutMs ?? 0) + RECORD_MARGIN_MS;
  return {
    batch: options.batch ?? 400,
    concurrency: { transfers: options.concurrency ?? 32, notices: RECEIVER_CONNECTIONS },
    leaseMs: Math.max(options.leaseMs ?? 2 * callMs, Math.max(callMs, noticeMs) + MIN_WAIT_MS),
    callMs,
    noticeMs,
    recordPatienceMs: options.recordPatienceMs ?? 60_000,
    pollMs: options.pollMs ?? POLL_MS,
    pace: createPace(options.callsPerSecond ?? null),
    noticePace: pacesOf(options.noticesPerSecond ?? null),
    terms,
    notices: { ...NOTICE_DEFAULTS, ...options.notices },
    probe: { ...PROBE_DEFAULTS, ...options.probe },
    random: options.random ?? Math.random,
    memory: createMemory(options.remembered ?? null),
    release: options.release ?? 'dev',
    emit: options.onEvent ?? (() => undefined),
  };
}

/** Each receiver has its own: one that allows few must not slow another down. */
function pacesOf(perSecond: number | null): RelayPlan['noticePace'] {
  const paces = new Map<string, Pace>();
  return (receiver) => {
    const pace = paces.get(receiver) ?? createPace(perSecond);
    paces.set(receiver, pace);
    return pace;
  };
}
