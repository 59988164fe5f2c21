import { parseAmount } from '../../../kernel/money.ts';
import { canonicalName, derivedSubjectId } from '../../../kernel/subject.ts';
import { checkName } from './check-name.ts';
import type { Field, RowContext, Source, StagedRow } from './source-format.ts';

/**
 * Purchase-card transactions as Birmingham City Council publishes them. `FILE` and `ROW` name a transaction; `TRANS DATE` is a
 * date in London; the billed amount counts, not the original one. Merchants are known by name only, so their ids derive from
 * it; the data is the buyer's side, read the other way round: a positive amount is the merchant's sale.
 */
export const birminghamCards: Source = {
  name: 'birmingham-cards',
  required: ['FILE', 'ROW', 'TRANS DATE', 'BILLING GROSS AMT', 'BILLING CUR CODE', 'MERCHANT NAME'],
  optional: [],
  allowsOthers: true,
  read: readRow,
};

function readRow(field: Field, context: RowContext): StagedRow {
  const file = checkName('FILE', field('FILE') ?? '');
  const row = checkName('ROW', field('ROW') ?? '');
  const name = field('MERCHANT NAME') ?? '';
  const occurred = context.readDate(field('TRANS DATE') ?? '');
  const currency = field('BILLING CUR CODE') ?? '';
  return {
    id: `${file}#${row}`,
    merchant: derivedSubjectId(birminghamCards.name, name, context.sha256),
    name,
    canonicalName: canonicalName(name),
    currency,
    amount: parseAmount(field('BILLING GROSS AMT') ?? '', currency),
    occurredOn: occurred.on,
    occurredAt: occurred.at,
  };
}
