import type { Command } from 'commander';
import { OnceperError } from '../../kernel/error.ts';
import { APPROVAL_LIFE, type ApprovalState } from '../../kernel/transitions.ts';
import { approveRequest, type Decided, executeApproval, rejectRequest } from '../../ops/approval/decide.ts';
import { approvalsIn, showApproval } from '../../ops/approval/read.ts';
import { editRequest } from '../../ops/approval/request.ts';
import { tellTemporal } from '../../ops/approval/wake.ts';
import { executeCommand } from '../../ops/commands.ts';
import { actParts, reasonOf } from '../approval-request.ts';
import { renderApproval, renderApprovals, shownApproval } from '../approval-text.ts';
import { type Act, type AddCommand, command, noun } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { statesOf, wholeNumber } from '../options.ts';
import { requireRole } from '../permissions.ts';
import type { Session } from '../session.ts';

/** `approvals list|show|edit|approve|reject|execute`: what one person asks for and another decides. */
export const addApprovals: AddCommand = (program, act) => {
  const approvals = noun(program, 'approvals', 'what one person asks for and another decides');
  addList(approvals, act);
  addShow(approvals, act);
  addEdit(approvals, act);
  addApprove(approvals, act);
  addReject(approvals, act);
  addExecute(approvals, act);
};

interface ListOptions {
  readonly state: readonly ApprovalState[];
  readonly key?: string;
  readonly limit: number;
}

function addList(approvals: Command, act: Act): void {
  command(approvals, 'list', {
    summary: 'requests that wait for a decision, or are in the states asked for',
    example: 'npx onceper approvals list --key settlement:2026-09',
  })
    .option('--state <states>', 'states, with commas between them', statesOf(APPROVAL_LIFE, 'a request'), [
      'requested',
      'approved',
    ])
    .option('--key <key>', 'of this key only')
    .option('--limit <n>', 'at most so many', wholeNumber('--limit', 1, 10_000), 50)
    .action(
      act(async (session, options: ListOptions) => {
        const { state: states, key = null, limit } = options;
        const found = await session.withDatabase((db) => approvalsIn(db, { states, key, limit }));
        session.answer({ approvals: found.map(shownApproval) }, renderApprovals(session, found));
        return EXIT.done;
      }),
    );
}

function addShow(approvals: Command, act: Act): void {
  command(approvals, 'show <id>', {
    summary: 'one request: exactly what its digest stands for, and the line that approves it',
    example: 'npx onceper approvals show 0c3f…',
  }).action(
    act(async (session, id: string) => {
      const approval = await session.withDatabase((db) => showApproval(db, id));
      session.answer({ approval: shownApproval(approval) }, renderApproval(session, approval));
      return EXIT.done;
    }),
  );
}

function addEdit(approvals: Command, act: Act): void {
  command(approvals, 'edit <id>', {
    summary: 'plan a request anew, as the world is now; whoever edits becomes its asker, and what was approved is void',
    example: 'npx onceper approvals edit 0c3f… --reason "two more rows came in"',
  })
    .requiredOption('--reason <reason>', 'why, for the record')
    .action(
      act(async (session, id: string, options: { readonly reason: string }) => {
        const { id: actor } = await session.actor();
        const edit = { id, actor, reason: reasonOf(options) };
        const approval = await session.withDatabase((db) => editRequest(db, actParts(session), edit));
        session.answer({ approval: shownApproval(approval) }, renderApproval(session, approval));
        return EXIT.done;
      }),
    );
}

function addApprove(approvals: Command, act: Act): void {
  command(approvals, 'approve <id>', {
    summary: 'approve exactly what was shown, and do it; never by whoever asked',
    example: 'npx onceper approvals approve 0c3f… --digest 9f86d081…',
  })
    .requiredOption('--digest <digest>', 'the digest of what you were shown')
    .option('--reason <reason>', 'what you have checked, for the record')
    .action(
      act(async (session, id: string, options: { readonly digest: string; readonly reason?: string }) => {
        const { digest, reason = null } = options;
        const { id: actor, token } = await session.actor();
        return session.withDatabase(async (db) => {
          const decided = await approveRequest(db, { id, actor, token, digest, reason });
          if (decided.kind === 'refused') throw refusedBy(decided);
          return answer(session, await executeApproval(db, actParts(session), { id, actor, token }));
        });
      }),
    );
}

function addReject(approvals: Command, act: Act): void {
  command(approvals, 'reject <id>', {
    summary: 'refuse a request for good, or take your own back',
    example: 'npx onceper approvals reject 0c3f… --reason "the bank says no"',
  })
    .requiredOption('--reason <reason>', 'why, for the record')
    .action(
      act(async (session, id: string, options: { readonly reason: string }) => {
        const { id: actor, token } = await session.actor();
        const by = { id, actor, token, reason: reasonOf(options) };
        return session.withDatabase(async (db) => {
          const { requestedBy, editedBy } = await showApproval(db, id);
          const isOwn = actor === requestedBy || actor === editedBy;
          await requireRole(session, isOwn ? 'operator' : 'approver', 'approvals reject');
          return answer(session, await rejectRequest(db, by));
        });
      }),
    );
}

function addExecute(approvals: Command, act: Act): void {
  command(approvals, 'execute <id>', {
    summary: 'do what was approved, where the command that approved it was interrupted',
    example: 'npx onceper approvals execute 0c3f…',
  }).action(
    act(async (session, id: string) => {
      const { id: actor, token } = await session.actor();
      const by = { id, actor, token };
      return answer(session, await session.withDatabase((db) => executeApproval(db, actParts(session), by)));
    }),
  );
}

/** Prints what was decided and tells Temporal; where it can't be told, the check that every worker starts does it later. */
async function answer(session: Session, decided: Decided): Promise<ExitCode> {
  if (decided.kind === 'refused') throw refusedBy(decided);
  const workflow = decided.kind === 'executed' ? await tell(session, decided) : null;
  const { approval } = decided;
  session.answer({ approval: shownApproval(approval), workflow }, renderApproval(session, approval));
  return EXIT.done;
}

async function tell(session: Session, { wake }: Extract<Decided, { kind: 'executed' }>): Promise<string | null> {
  if (wake.kind === 'none') return null;
  const { id: actor } = await session.actor();
  const { taskQueue } = session.config;
  try {
    return await session.withTemporal((client) => tellTemporal(client, wake, { actor, taskQueue }));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    session.note(`it is done, and Temporal could not be told (${why}); a worker finds it within minutes`);
    return null;
  }
}

function refusedBy({ approval, code, reason }: Extract<Decided, { kind: 'refused' }>): OnceperError {
  return new OnceperError({ code, message: reason, remedy: remedyOf(code, approval), at: approval.id });
}

function remedyOf(
  code: Extract<Decided, { kind: 'refused' }>['code'],
  { id, state }: Extract<Decided, { kind: 'refused' }>['approval'],
): string {
  if (code === 'world_moved' || code === 'already_executed' || code === 'approval_expired')
    return 'look at how things are now, and ask again';
  if (code === 'already_decided' && state === 'approved') return executeCommand(id);
  return `npx onceper approvals show ${id}`;
}
