/**
 * An open transaction (or a single connection), as the store hands it to a job: text with $1 parameters in, rows out.
 * bigint columns arrive as bigint, dates as `YYYY-MM-DD`, timestamptz as ISO 8601 UTC strings with microseconds; no value
 * passes through a JavaScript Date, so the process's time zone can't move it.
 */
export interface Tx {
  /**
   * With a name the server keeps the statement's plan for as long as the connection lives: for texts that are constants of
   * the program, each under a name of its own.
   */
  query<Row>(
    text: string,
    values?: readonly unknown[],
    name?: string,
  ): Promise<{ readonly rows: Row[]; readonly rowCount: number }>;
}

/** A select over a job's own tables that the store embeds in a statement of its own; `$n` counts from 1. */
export interface Select {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** An instant as ISO 8601 UTC text, for example `2026-09-30T18:00:00Z`. */
export type Instant = string;
