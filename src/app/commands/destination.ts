import { pauseInWords, resumeDestination } from '../../ops/destinations.ts';
import { type DestinationStanding, readDestinations } from '../../store/destinations.ts';
import { reasonOf } from '../approval-request.ts';
import { type AddCommand, command, noun } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { table } from '../table.ts';

/** `destination list|resume`: which counterparty is paused by an answer about us, and a person's word that it may go on. */
export const addDestination: AddCommand = (program, act) => {
  const destination = noun(
    program,
    'destination',
    'whether payouts go out, or wait for an answer about us to be mended',
  );
  command(destination, 'list', {
    summary: 'every destination that can pause, since when it is open or paused, and by which answer',
    example: 'npx onceper destination list',
  }).action(
    act(async (session) => {
      const destinations = await session.withDatabase(readDestinations);
      session.answer({ destinations }, renderDestinations(session, destinations));
      return EXIT.done;
    }),
  );
  command(destination, 'resume <name>', {
    summary: 'let a paused destination go on at once; without it, it goes on by itself soon after its cause is mended',
    example: 'npx onceper destination resume accounts --reason "the balance was topped up"',
  })
    .requiredOption('--reason <reason>', 'why, for the record')
    .action(
      act(async (session, name: string, options: { readonly reason: string }) => {
        const { id: actor } = await session.actor();
        const reason = reasonOf(options);
        const before = await session.withDatabase((db) => resumeDestination(db, { name, actor, reason }));
        session.answer({ resumed: name, before }, `resumed: ${pauseInWords(before)}`);
        return EXIT.done;
      }),
    );
};

function renderDestinations(session: Session, destinations: readonly DestinationStanding[]): string {
  const rows = destinations.map(({ name, state, since, status, code, probes, probeAt }) => {
    return [name, state, since, status === null ? '' : `${status} ${code ?? ''}`, String(probes), probeAt ?? ''];
  });
  return table(session, ['destination', 'state', 'since', 'answered', 'tried', 'next try'], rows, ['tried']);
}
