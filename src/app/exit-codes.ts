import type { ActionState, Decision } from '../kernel/transitions.ts';

/** The documented exit codes of every command. */
export const EXIT = {
  /** Done, or a duplicate that was answered with the stored result. */
  done: 0,
  /** No server, and anything else. */
  failed: 1,
  /** Usage, malformed or unknown: typing it again as it is can't help. */
  usage: 2,
  /** Refused or held, or a refused file. */
  refused: 3,
  conflict: 4,
  /** In progress, deferred, or admitted and not waited for. */
  underWay: 5,
  /** Needs attention, or ended failed. */
  attention: 6,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Every error code with an exit code of its own; all others are EXIT.failed. */
export const EXIT_OF_ERROR: Readonly<Record<string, ExitCode>> = {
  usage: EXIT.usage,
  bad_configuration: EXIT.usage,
  gateway_credentials: EXIT.usage,
  gateway_terms: EXIT.usage,
  gateway_unset: EXIT.usage,
  gateway_url: EXIT.usage,
  receiver_address: EXIT.usage,
  receiver_network: EXIT.usage,
  receiver_secrets: EXIT.usage,
  receiver_url: EXIT.usage,
  file_unreadable: EXIT.usage,
  malformed_amount: EXIT.usage,
  malformed_calendar: EXIT.usage,
  malformed_date: EXIT.usage,
  malformed_effect_number: EXIT.usage,
  malformed_instant: EXIT.usage,
  malformed_key: EXIT.usage,
  malformed_posting: EXIT.usage,
  malformed_override: EXIT.usage,
  malformed_period: EXIT.usage,
  malformed_range: EXIT.usage,
  no_such_local_time: EXIT.usage,
  unknown_only: EXIT.usage,
  malformed_rule: EXIT.usage,
  range_too_large: EXIT.usage,
  unknown_backfill: EXIT.usage,
  simulator_settings: EXIT.usage,
  no_anchor: EXIT.usage,
  audit_head_missing: EXIT.attention,
  no_schedule: EXIT.refused,
  unknown_drill: EXIT.usage,
  too_many_decimals: EXIT.usage,
  webhook_secret: EXIT.usage,
  webhook_secret_unset: EXIT.usage,
  counterparty_id_missing: EXIT.usage,
  unknown_approval: EXIT.usage,
  unknown_currency: EXIT.usage,
  unknown_destination: EXIT.usage,
  unknown_effect: EXIT.usage,
  unknown_job: EXIT.usage,
  unknown_key: EXIT.usage,
  unknown_override: EXIT.usage,
  unknown_run: EXIT.usage,
  unknown_source: EXIT.usage,
  unknown_zone: EXIT.usage,
  malformed_actor: EXIT.usage,
  overprivileged: EXIT.refused,
  break_glass_refused: EXIT.refused,
  server_needed: EXIT.refused,
  server_certificate: EXIT.usage,
  server_plain_http: EXIT.usage,
  file_needed: EXIT.usage,
  file_too_large: EXIT.refused,
  origin_refused: EXIT.refused,
  token_needed: EXIT.refused,
  forbidden: EXIT.refused,
  token_expired: EXIT.refused,
  token_refused: EXIT.refused,
  already_decided: EXIT.refused,
  already_executed: EXIT.refused,
  already_over: EXIT.refused,
  approval_expired: EXIT.refused,
  backfill_refused: EXIT.refused,
  before_first: EXIT.refused,
  digest_differs: EXIT.refused,
  no_rule: EXIT.refused,
  needs_approval: EXIT.refused,
  not_approved: EXIT.refused,
  not_editable: EXIT.refused,
  not_ended: EXIT.refused,
  nothing_to_backfill: EXIT.refused,
  nothing_to_release: EXIT.refused,
  nothing_to_resolve: EXIT.refused,
  nothing_to_resume: EXIT.refused,
  nothing_to_retry: EXIT.refused,
  nothing_to_take_over: EXIT.refused,
  nothing_to_skip: EXIT.refused,
  nothing_to_adjust: EXIT.refused,
  nothing_on_hold: EXIT.refused,
  own_request: EXIT.refused,
  world_moved: EXIT.refused,
  override_conflict: EXIT.conflict,
  rule_differs: EXIT.conflict,
};

export function exitCodeOfError(code: string): ExitCode {
  return EXIT_OF_ERROR[code] ?? EXIT.failed;
}

/**
 * The exit code of a run: what was decided and, where the run was waited for, what became of its key. `state` is null where
 * nobody waited; `decision` is null where no worker has decided yet.
 */
export function exitCodeOfRun(decision: Decision | null, state: ActionState | null): ExitCode {
  switch (decision) {
    case null:
      return EXIT.underWay;
    case 'refused':
    case 'held':
      return EXIT.refused;
    case 'conflict':
      return EXIT.conflict;
    case 'duplicate':
      return EXIT.done;
    case 'admitted':
    case 'in_progress':
    case 'deferred':
      return state === null ? EXIT.underWay : exitCodeOfState(state);
  }
}

function exitCodeOfState(state: ActionState): ExitCode {
  switch (state) {
    case 'done':
    case 'compensating':
    case 'compensated':
      return EXIT.done;
    case 'skipped':
      return EXIT.refused;
    case 'admitted':
    case 'running':
    case 'failed':
      return EXIT.underWay;
    case 'exhausted':
    case 'cancelled':
      return EXIT.attention;
  }
}
