import type { ReadDate } from './read-date.ts';

/** A row of a file as it is staged: amounts in minor units, the merchant already an id. */
export interface StagedRow {
  /** The source's own id of the transaction; null where it has none and the content names it. */
  readonly id: string | null;
  readonly merchant: string;
  /** The merchant's name as the file writes it; null where the file has none. */
  readonly name: string | null;
  /** What a derived merchant id was made from; null where the source states merchant ids. */
  readonly canonicalName: string | null;
  readonly currency: string;
  readonly amount: bigint;
  readonly occurredOn: string;
  readonly occurredAt: string | null;
}

/** What reading a row needs from outside the row. */
export interface RowContext {
  readonly readDate: ReadDate;
  /** SHA-256 of a text's UTF-8 bytes, hex. */
  readonly sha256: (text: string) => string;
}

/** One row's field by column name; an optional column that the file lacks gives null. */
export type Field = (column: string) => string | null;

/** A declared format: which columns a file of this source has and how a row of it is read. */
export interface Source {
  readonly name: string;
  readonly required: readonly string[];
  readonly optional: readonly string[];
  /** Whether other columns may stand beside them. Where not, a misspelt optional column can't pass for an absent one. */
  readonly allowsOthers: boolean;
  /** Throws OnceperError, whose message is the reason for which the row is refused. */
  read(field: Field, context: RowContext): StagedRow;
}
