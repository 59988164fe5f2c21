import type pg from 'pg';
import type { JobRule } from '../../rule.ts';
import type { Refusal } from './refusals.ts';

/** What to import, as what, and with which connection. */
export interface ImportRequest {
  /** A connection of its own for the import; it is released when the import ends. */
  readonly connect: () => Promise<pg.PoolClient>;
  readonly file: string;
  readonly source: string;
  readonly actor: string;
  readonly rule: JobRule;
  /** Counts rows of one id and content within the file as one transaction; without it they refuse the file. */
  readonly allowRepeats?: boolean;
  /** SHA-256 of a text's UTF-8 bytes, hex; for tests of what collides. */
  readonly sha256?: (text: string) => string;
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
  /** Of the known, those that repeat an earlier line of the file by id and content. */
  readonly repeats: number;
  /** Of the added, those settled by a later period than that of their date. */
  readonly late: number;
}

/** A file is stored whole or not at all. `refused` keeps the first 10,000 refusals, `refusedTotal` counts all. */
export type Imported =
  | (Counts & { readonly kind: 'imported'; readonly refused: readonly []; readonly refusedTotal: 0 })
  | (Counts & { readonly kind: 'refused'; readonly refused: readonly Refusal[]; readonly refusedTotal: number });
