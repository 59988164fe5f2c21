/**
 * Something is wrong and a person or a caller must act: a stable `code`, what happened, to which key or place (`at`), and
 * what to do next (`remedy`). Losing a race is never an error: races return unions. Match on `code`, never on the class:
 * an error that crossed Temporal or a process keeps its code and loses its prototype.
 */
export class OnceperError extends Error {
  override readonly name = 'OnceperError';
  readonly code: string;
  readonly remedy: string;
  readonly at: string | null;

  constructor(fault: { code: string; message: string; remedy: string; at?: string | null; cause?: unknown }) {
    super(fault.message, fault.cause === undefined ? undefined : { cause: fault.cause });
    this.code = fault.code;
    this.remedy = fault.remedy;
    this.at = fault.at ?? null;
  }
}

/** The `code` of any thrown value, or null where it has none; safe on values that crossed a process. */
export function codeOf(thrown: unknown): string | null {
  if (typeof thrown !== 'object' || thrown === null || !('code' in thrown)) return null;
  return typeof thrown.code === 'string' ? thrown.code : null;
}
