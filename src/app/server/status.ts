import { FAULTS_OF_CONNECTING } from '../../store/fault.ts';
import { EXIT, exitCodeOfError } from '../exit-codes.ts';

const STATUS_OF_ERROR: Readonly<Record<string, number>> = {
  unknown_route: 404,
  method_not_allowed: 405,
  token_needed: 401,
  token_refused: 401,
  token_expired: 401,
  forbidden: 403,
  origin_refused: 403,
  request_slow: 408,
  body_too_large: 413,
  file_too_large: 413,
  file_cut: 400,
  server_busy: 503,
  temporal_unreachable: 503,
  lock_timeout: 503,
};

/** The HTTP status of a fault: by its code where that has one, else by its exit code. */
export function statusOfError(code: string): number {
  const own = STATUS_OF_ERROR[code];
  if (own !== undefined) return own;
  if (FAULTS_OF_CONNECTING.has(code)) return 503;
  if (code.startsWith('unknown_')) return 404;
  const exit = exitCodeOfError(code);
  if (exit === EXIT.usage) return 400;
  return exit === EXIT.refused || exit === EXIT.conflict ? 409 : 500;
}
