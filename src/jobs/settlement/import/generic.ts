import { parseAmount } from '../../../kernel/money.ts';
import { statedSubjectId } from '../../../kernel/subject.ts';
import { checkName } from './check-name.ts';
import type { Field, RowContext, Source, StagedRow } from './source-format.ts';

/**
 * The format for files of one's own. A header names the columns, in any order: `merchant` (the job's own merchant register:
 * a-z, 0-9 and '-'), `date` (YYYY-MM-DD, or an ISO instant with its offset), `amount` (decimal; positive is a sale, negative a
 * refund) and `currency` (ISO 4217); optional are `id` (the transaction's own id; with it a row can never count twice) and
 * `name` (the merchant's, for people). Other columns are refused.
 */
export const generic: Source = {
  name: 'generic',
  required: ['merchant', 'date', 'amount', 'currency'],
  optional: ['id', 'name'],
  allowsOthers: false,
  read: readRow,
};

function readRow(field: Field, context: RowContext): StagedRow {
  const id = field('id');
  if (id !== null) checkName('id', id);
  const merchant = statedSubjectId(checkName('merchant', field('merchant') ?? ''));
  const occurred = context.readDate(field('date') ?? '');
  const currency = field('currency') ?? '';
  return {
    id,
    merchant,
    name: field('name') || null,
    canonicalName: null,
    currency,
    amount: parseAmount(field('amount') ?? '', currency),
    occurredOn: occurred.on,
    occurredAt: occurred.at,
  };
}
