import type { Decision, Trigger } from '../kernel/transitions.ts';

type Level = 'debug' | 'info' | 'warn' | 'error';

/** Which row an event is about; every line carries what it knows of these, and `release` beside them. */
interface Subject {
  readonly job?: string;
  readonly key?: string;
  readonly run?: string;
  readonly attempt?: number;
  readonly fence?: bigint | string;
}

/**
 * Everything this product logs. One line is one event; a new kind of line begins here. Ids, counts and codes only: no
 * amounts, names, bodies or connection strings.
 */
export type Event = Subject &
  (
    | { readonly event: 'run_decided'; readonly decision: Decision; readonly code: string; readonly trigger: Trigger }
    | { readonly event: 'attempt_granted'; readonly slices: number }
    | { readonly event: 'attempt_busy'; readonly until: string }
    | { readonly event: 'attempt_ended'; readonly outcome: string; readonly code: string | null; readonly next: string }
    | { readonly event: 'slices_performed'; readonly slices: number; readonly ms: number }
    | { readonly event: 'lease_renewed' }
    | { readonly event: 'lease_lost'; readonly step: string }
    | { readonly event: 'action_done'; readonly ms: number }
    | { readonly event: 'activity_failed'; readonly step: string; readonly code: string; readonly message: string }
    | {
        readonly event: 'worker_started';
        readonly taskQueue: string;
        readonly namespace: string;
        readonly receivers: readonly string[];
      }
    | { readonly event: 'relay_started'; readonly gateway: string; readonly receivers: readonly string[] }
    | { readonly event: 'gateway_started'; readonly url: string; readonly journal: string }
    | { readonly event: 'server_started'; readonly url: string }
    | {
        readonly event: 'server_answered';
        readonly command: string;
        readonly actor: string | null;
        readonly status: number;
        readonly exit: number | null;
        readonly ms: number;
      }
    | {
        readonly event: 'server_refused';
        readonly command: string;
        readonly code: string;
        readonly actor: string | null;
        readonly from: string;
      }
    | { readonly event: 'server_fault'; readonly message: string }
    | { readonly event: 'draining'; readonly signal: string; readonly graceMs: number }
    | { readonly event: 'stopped'; readonly code: number }
    | { readonly event: 'close_failed'; readonly what: string; readonly message: string }
    | { readonly event: 'search_attributes_registered'; readonly names: readonly string[] }
    | { readonly event: 'relay_batch'; readonly counts: Readonly<Record<string, number>> }
    | {
        readonly event: 'effect_recorded';
        readonly number: string;
        readonly state: string;
        readonly code: string | null;
      }
    | { readonly event: 'effect_lost'; readonly number: string }
    | { readonly event: 'relay_fault'; readonly step: string; readonly code: string; readonly message: string }
    | { readonly event: 'key_delivered' }
    | { readonly event: 'webhooks_started'; readonly url: string }
    | {
        readonly event: 'webhook_decided';
        readonly id: string;
        readonly number: string | null;
        readonly decision: string;
        readonly code: string | null;
        readonly state: string | null;
      }
    | { readonly event: 'webhook_refused'; readonly status: number; readonly why: string }
    | { readonly event: 'webhook_fault'; readonly id: string | null; readonly code: string; readonly message: string }
    | { readonly event: 'period_overdue'; readonly period: string; readonly state: string }
    | { readonly event: 'runs_stranded'; readonly code: string; readonly count: number; readonly since: string }
    | { readonly event: 'zone_adopted'; readonly zone: string; readonly facts: string; readonly from: string }
    | {
        readonly event: 'zone_tables_differ';
        readonly zone: string;
        readonly odd: string;
        readonly at: string;
        readonly reads: string;
        readonly ledger: string;
      }
    | { readonly event: 'zones_not_compared'; readonly message: string }
    | { readonly event: 'schedule_topped_up' }
    | { readonly event: 'backfill_started'; readonly backfill: string }
    | { readonly event: 'backfill_ended'; readonly backfill: string; readonly cancelled: boolean }
    | { readonly event: 'delivery_frozen'; readonly reason: string }
    | {
        readonly event: 'destination_paused';
        readonly destination: string;
        readonly code: string;
        readonly status: number;
      }
    | { readonly event: 'destination_resumed'; readonly destination: string }
    | {
        readonly event: 'audit_anchor';
        readonly seq: string;
        readonly hash: string;
        readonly at: string;
        readonly signature: string | null;
        readonly signer: string | null;
      }
    | { readonly event: 'audit_fell'; readonly anchored: string; readonly head: string; readonly reason: string }
    | { readonly event: 'watch_restored'; readonly taskQueue: string }
    | { readonly event: 'look_not_asked' | 'memory_not_asked' | 'watch_not_kept'; readonly message: string }
    | { readonly event: 'database_idle_error'; readonly message: string }
    | { readonly event: 'server_waited_for'; readonly server: string; readonly message: string }
    | { readonly event: 'sdk'; readonly message: string; readonly level: Level }
  );

/** The level of each kind of event: `warn` is for what an operator may want to look at, `error` for what a person must. */
const LEVELS = {
  lease_renewed: 'debug',
  slices_performed: 'debug',
  relay_batch: 'debug',
  look_not_asked: 'warn',
  watch_restored: 'warn',
  watch_not_kept: 'warn',
  zone_adopted: 'warn',
  zone_tables_differ: 'warn',
  zones_not_compared: 'warn',
  memory_not_asked: 'warn',
  activity_failed: 'warn',
  lease_lost: 'warn',
  effect_lost: 'warn',
  relay_fault: 'warn',
  webhook_refused: 'warn',
  webhook_fault: 'warn',
  server_refused: 'warn',
  server_fault: 'warn',
  database_idle_error: 'warn',
  close_failed: 'warn',
  server_waited_for: 'warn',
  period_overdue: 'error',
  runs_stranded: 'error',
  delivery_frozen: 'error',
  audit_fell: 'error',
  destination_paused: 'error',
  run_decided: 'info',
  attempt_granted: 'info',
  attempt_busy: 'info',
  action_done: 'info',
  audit_anchor: 'info',
  backfill_started: 'info',
  backfill_ended: 'info',
  schedule_topped_up: 'info',
  key_delivered: 'info',
  destination_resumed: 'info',
  worker_started: 'info',
  relay_started: 'info',
  webhooks_started: 'info',
  server_started: 'info',
  server_answered: 'info',
  gateway_started: 'info',
  draining: 'info',
  stopped: 'info',
  search_attributes_registered: 'info',
} satisfies Record<Exclude<Event['event'], 'sdk' | 'attempt_ended' | 'effect_recorded' | 'webhook_decided'>, Level>;

/** The level of an event: its kind's, where what it tells does not say it. */
export function levelOf(event: Event): Level {
  if (event.event === 'sdk') return event.level;
  if (event.event === 'attempt_ended') return event.next === 'exhausted' ? 'error' : 'warn';
  if (event.event === 'effect_recorded') {
    return event.state === 'needs_attention' || event.state === 'dead' ? 'error' : 'debug';
  }
  if (event.event === 'webhook_decided') {
    return event.decision === 'attention' || event.state === 'needs_attention' ? 'error' : 'debug';
  }
  return LEVELS[event.event];
}
