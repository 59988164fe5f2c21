import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { Waiting } from '../ops/rewind/drive.ts';
import { type Reconciled, type Reconciling, reconcileRewind } from '../ops/rewind.ts';
import { lastPoll, startRun, startTick } from '../ops/run.ts';
import type { Database } from '../store/database.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { openGateway } from './gateway.ts';
import { requireRole } from './permissions.ts';
import type { Session } from './session.ts';
import { isRememberedOutside, rememberedAnchor, statusOfWorkflow } from './watch.ts';

/** How long what is waited for may stand still before the command says whether anybody works. */
const SILENT_MS = 15_000;
const SHOWN = 20;

/** `doctor --reconcile-rewind`: compares the ledger with the counterparty, settles again what was lost, lets delivery go on. */
export async function reconcile(session: Session, since: string): Promise<ExitCode> {
  const { config, registry } = session;
  await requireRole(session, 'operator', 'doctor --reconcile-rewind');
  const { id: actor } = await session.actor();
  const { gateway } = openGateway(config);
  try {
    const reconciled = await session.withDatabase((db) =>
      session.withTemporal((client) =>
        reconcileRewind({ db, registry, gateway, actor, ...drivenBy(session, client, db, actor) }, since),
      ),
    );
    session.answer(reconciled, render(session, reconciled));
    return reconciled.kind === 'still_frozen' || reconciled.twice.length > 0 ? EXIT.attention : EXIT.done;
  } finally {
    await gateway.close();
  }
}

/** How lost keys are started, and how a person hears what they wait for. */
function drivenBy(
  session: Session,
  client: Client,
  db: Database,
  actor: string,
): Pick<Reconciling, 'startRun' | 'startOwner' | 'isCompleted' | 'isRemembered' | 'anchorOutside' | 'onWaiting'> {
  const { taskQueue } = session.config;
  let said = '';
  let saidAt = 0;
  return {
    async startRun(run, door) {
      if (door === 'run') await startRun(db, client, run, { actor, taskQueue });
      else await startTick(client, run, { actor, taskQueue, door });
    },
    startOwner: (owner) => startOwner(client, taskQueue, owner),
    isCompleted: async (key) => (await statusOfWorkflow(client, key)) === 'COMPLETED',
    isRemembered: () => isRememberedOutside(client, db),
    anchorOutside: () => rememberedAnchor(client),
    async onWaiting(waiting) {
      const sentences = waiting.map(sentenceOf).join('\n');
      const now = performance.now();
      if (sentences === said && now - saidAt < SILENT_MS) return;
      session.note(sentences === said ? await pollNote(client, taskQueue) : `Waiting for:\n${sentences}`);
      said = sentences;
      saidAt = now;
    },
  };
}

/** Temporal may have completed this ID for a ledger that is gone: only a running one may refuse. */
async function startOwner(
  client: Client,
  taskQueue: string,
  { key, run }: Parameters<Reconciling['startOwner']>[0],
): Promise<void> {
  try {
    await client.workflow.start('period', {
      workflowId: key,
      taskQueue,
      args: [{ run }],
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    });
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}

function sentenceOf({ key, state, reason }: Waiting): string {
  return `  ${key}: ${state.replaceAll('_', ' ')}${reason === '' ? '' : `, ${reason}`}`;
}

async function pollNote(client: Client, taskQueue: string): Promise<string> {
  const polled = await lastPoll(client, taskQueue);
  return polled === null
    ? `  still waiting, and no worker polls task queue ${taskQueue}: start one with npx onceper worker`
    : `  still waiting; task queue ${taskQueue} was last polled ${polled}`;
}

function render(session: Session, reconciled: Reconciled): string {
  return [...alarm(session, reconciled), ...body(reconciled), ...impossible(reconciled)].join('\n');
}

/** What cost money comes before all else. */
function alarm({ colours }: Session, { twice }: Reconciled): string[] {
  if (twice.length === 0) return [];
  const named = twice.slice(0, SHOWN).map(({ number, transfers }) => `  ${number}: ${transfers} transfers`);
  return [
    colours.red(`PAID TWICE: the counterparty has moved money more than once for ${twice.length} numbers.`),
    ...named,
    ...(twice.length > SHOWN ? [`  and ${twice.length - SHOWN} more: --json names every one`] : []),
    'Ask for that money back now, by these numbers. Nothing here sends it again.',
    '',
  ];
}

function body(reconciled: Reconciled): string[] {
  const { known, lookedUpFirst, lost, unlisted } = reconciled;
  switch (reconciled.kind) {
    case 'not_frozen':
      return [`Delivery is not frozen, and none of ${known} transfers that the counterparty knows is missing here.`];
    case 'thawed':
      return [
        `Of ${known} transfers that the counterparty knows, none is missing here.`,
        `${lookedUpFirst} that this database believed unsent are looked up before anything is sent.`,
        'Delivery goes on.',
      ];
    case 'still_frozen':
      if (unlisted.length > 0)
        return [
          `Delivery stays frozen: the counterparty’s list (${known} transfers of ours) lacks what this ledger knows was paid:`,
          ...unlisted.slice(0, SHOWN).map((number) => `  ${number}`),
          'A list that is not whole proves nothing. Is ONCEPER_GATEWAY_URL the counterparty that was paid through?',
        ];
      return [
        'Delivery stays frozen: the counterparty knows transfers that this database lost.',
        ...lost.map(({ key, numbers }) => `  ${key}: ${numbers} transfers`),
        'A person must act first:',
        ...reconciled.waiting.map(sentenceOf),
        'Then type npx onceper doctor --reconcile-rewind again: it goes on from here.',
      ];
  }
}

function impossible({ impossible: references }: Reconciled): string[] {
  if (references.length === 0) return [];
  return [
    '',
    'Left aside, since no run can have sent them (their period has not ended, or lies before the job’s first):',
    ...references.slice(0, SHOWN).map((reference) => `  ${reference}`),
  ];
}
