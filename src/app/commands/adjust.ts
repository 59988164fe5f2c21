import { parsePosting } from '../../ops/approval/adjustment.ts';
import { askFor, REASON, reasonOf } from '../approval-request.ts';
import { type AddCommand, command } from '../command.ts';

/** `adjust KEY`: asks for postings by hand, as a document of their own. */
export const addAdjust: AddCommand = (program, act) => {
  command(program, 'adjust <key>', {
    summary: 'ask for postings by hand to a key that is done; the next open period settles them with each subject',
    example: 'npx onceper adjust settlement:2026-09 --posting m-1001:GBP:fees:250 --reason "fee waived"',
  })
    .requiredOption(
      '--posting <posting...>',
      'SUBJECT:CURRENCY:ACCOUNT:AMOUNT in minor units, out of clearing, fees or cash; below 0 it goes back there',
    )
    .requiredOption('--reason <reason>', REASON)
    .action(
      act(async (session, key: string, options: { readonly posting: readonly string[]; readonly reason: string }) => {
        const reason = reasonOf(options);
        const { posting: postings } = options;
        for (const posting of postings) parsePosting(posting);
        return askFor(session, { kind: 'adjustment', ask: { key, postings }, reason });
      }),
    );
};
