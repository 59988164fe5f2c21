import type { Command } from 'commander';
import type { ApprovalKind } from '../kernel/approval.ts';
import type { ActParts, Ask } from '../ops/approval/act.ts';
import { requestApproval } from '../ops/approval/request.ts';
import type { Database } from '../store/database.ts';
import { renderRequested, shownApproval } from './approval-text.ts';
import { type Act, command } from './command.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { usage } from './fault.ts';
import type { Session } from './session.ts';

/** What acts work with, of this command's configuration. */
export function actParts({ registry, config }: Pick<Session, 'registry' | 'config'>): ActParts {
  return { registry, release: config.release };
}

/** What a command asks an approver for. */
interface Asked {
  readonly kind: ApprovalKind;
  readonly ask: Ask;
  readonly reason: string;
  readonly validMs?: number;
}

/** Stores a request and prints it with the line that approves it. Nothing is done before somebody else approves. */
export async function askFor(session: Session, of: Asked | ((db: Database) => Promise<Asked>)): Promise<ExitCode> {
  const { id: actor } = await session.actor();
  const requested = await session.withDatabase(async (db) => {
    const asked = typeof of === 'function' ? await of(db) : of;
    return requestApproval(db, actParts(session), { ...asked, actor });
  });
  const document = { approval: shownApproval(requested.approval), isNew: requested.isNew };
  session.answer(document, renderRequested(session, requested));
  return EXIT.done;
}

/** A command that only asks for something about what it names, with a reason. */
export function askingCommand(
  parent: Command,
  act: Act,
  of: {
    readonly syntax: string;
    readonly summary: string;
    readonly example: string;
    readonly kind: ApprovalKind;
    readonly ask: (subject: string) => Ask;
  },
): void {
  command(parent, of.syntax, of)
    .requiredOption('--reason <reason>', REASON)
    .action(
      act((session, subject: string, options: { readonly reason: string }) =>
        askFor(session, { kind: of.kind, ask: of.ask(subject), reason: reasonOf(options) }),
      ),
    );
}

/** What `--reason` of a request is for. */
export const REASON = 'why, for the record and for whoever approves';

/** A request is signed with a reason that says something. */
export function reasonOf({ reason }: { readonly reason: string }): string {
  if (reason.trim() !== '') return reason.trim();
  throw usage('what people do is signed with a reason', '--reason', 'say why, for example --reason "account reopened"');
}
