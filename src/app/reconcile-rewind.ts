import { WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { runCommand } from '../ops/commands.ts';
import { type Reconciled, reconcileRewind } from '../ops/rewind.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { openGateway } from './gateway.ts';
import { requireRole } from './permissions.ts';
import type { Session } from './session.ts';

/** `doctor --reconcile-rewind`: compares a frozen ledger with the counterparty and lets delivery go on when nothing is lost. */
export async function reconcile(session: Session, since: string): Promise<ExitCode> {
  const { config, registry } = session;
  await requireRole(session, 'operator', 'doctor --reconcile-rewind');
  const { id: actor } = await session.actor();
  const { gateway } = openGateway(config);
  try {
    const reconciled = await session.withDatabase((db) =>
      session.withTemporal((client) => {
        const startOwner = async (key: string, run: string): Promise<boolean> => {
          try {
            // Temporal may have completed this ID for a ledger that is gone: only a running one may refuse.
            await client.workflow.start('period', {
              workflowId: key,
              taskQueue: config.taskQueue,
              args: [{ run }],
              workflowIdReusePolicy: 'ALLOW_DUPLICATE',
            });
            return true;
          } catch (error) {
            if (error instanceof WorkflowExecutionAlreadyStartedError) return false;
            throw error;
          }
        };
        return reconcileRewind({ db, registry, gateway, startOwner, actor }, since);
      }),
    );
    session.answer(reconciled, render(reconciled));
    return reconciled.kind === 'still_frozen' ? EXIT.attention : EXIT.done;
  } finally {
    await gateway.close();
  }
}

function render(reconciled: Reconciled): string {
  switch (reconciled.kind) {
    case 'not_frozen':
      return 'Delivery is not frozen: nothing to reconcile.';
    case 'thawed':
      return [
        `Of ${reconciled.known} transfers that the counterparty knows, none is missing here.`,
        `${reconciled.lookedUpFirst} that this database believed unsent are looked up before anything is sent.`,
        'Delivery goes on.',
      ].join('\n');
    case 'still_frozen':
      return [
        'Delivery stays frozen: the counterparty knows transfers that this database lost.',
        ...reconciled.lost.map(({ key, numbers }) => `  ${key}: ${numbers} transfers`),
        `${reconciled.redriven} unfinished keys were started again. Run each lost period, wait until it is done, then reconcile again:`,
        ...reconciled.lost.map(({ job, period }) => `  ${runCommand(job, period, ' --wait')}`),
        '  npx onceper doctor --reconcile-rewind',
      ].join('\n');
  }
}
