import type pg from 'pg';
import type { Tx } from '../../../kernel/sql.ts';
import type { JobRule } from '../../rule.ts';
import type { Refusal } from './refusals.ts';
import type { Held, KnownFrom } from './repeats.ts';

/** What to import, as what, and with which connection. */
export interface ImportRequest {
  /** A connection of its own for the import; it is released when the import ends. */
  readonly connect: () => Promise<pg.PoolClient>;
  /** The name of the file, for whoever reads of it. */
  readonly file: string;
  /** Where its bytes are, when that is elsewhere. */
  readonly path?: string;
  readonly source: string;
  readonly actor: string;
  readonly rule: JobRule;
  /** Counts rows of one id and content within the file as one transaction; without it they refuse the file. */
  readonly allowRepeats?: boolean;
  /**
   * A person's word for rows that equal stored ones in everything but their ids: `new` stores all of them, `known` none. Without it
   * a file that mostly holds such rows is held.
   */
  readonly as?: 'new' | 'known';
  /** Appends to the audit in the import's transaction, as its last statement. */
  readonly audit?: (tx: Tx, stored: StoredImport) => Promise<void>;
  /** SHA-256 of a text's UTF-8 bytes, hex; for tests of what collides. */
  readonly sha256?: (text: string) => string;
}

/** What an import stored, and by whose word, as the audit has it. */
export interface StoredImport {
  readonly source: string;
  readonly file: string;
  readonly sha256: string;
  readonly rows: number;
  readonly added: number;
  readonly known: number;
  readonly late: number;
  readonly repeats: number;
  /** Null where nobody had to say. */
  readonly as: 'new' | 'known' | null;
  readonly allowRepeats: boolean;
}

interface Counts {
  readonly file: string;
  readonly source: string;
  /** Rows of the file after its header, refused ones included. */
  readonly rows: number;
  /** Stored now. */
  readonly added: number;
  /** Stored before, by this file or another. */
  readonly known: number;
  /** The files that the known rows are known from, the largest part first. */
  readonly knownFrom: readonly KnownFrom[];
  /** Of the known, those that repeat an earlier line of the file by id and content. */
  readonly repeats: number;
  /** Of the added, those settled by a later period than that of their date. */
  readonly late: number;
}

/**
 * A file is stored whole or not at all. `refused` keeps the first 10,000 refusals, `refusedTotal` counts all. `held` waits for a
 * person's word, by `as`.
 */
export type Imported =
  | (Counts & { readonly kind: 'imported'; readonly refused: readonly []; readonly refusedTotal: 0 })
  | (Counts & {
      readonly kind: 'held';
      readonly held: Held;
      readonly refused: readonly [];
      readonly refusedTotal: 0;
    })
  | (Counts & { readonly kind: 'refused'; readonly refused: readonly Refusal[]; readonly refusedTotal: number });
