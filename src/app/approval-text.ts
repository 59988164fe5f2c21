import type { Requested } from '../ops/approval/request.ts';
import { approveCommand, executeCommand } from '../ops/commands.ts';
import type { Approval } from '../store/approvals.ts';
import { money } from './outbox-text.ts';
import type { Session } from './session.ts';
import { table } from './table.ts';
import { linesOf } from './terminal.ts';

/** A request in the shape that `--json` prints. */
export function shownApproval(approval: Approval) {
  const { isExpired: _, ...shown } = approval;
  return shown;
}

export function renderApprovals(session: Session, approvals: readonly Approval[]): string {
  if (approvals.length === 0) return 'no request is in these states';
  const rows = approvals.map(({ id, kind, subject, state, editedBy, requestedAt, expiresAt }) => {
    return [id, kind.replaceAll('_', ' '), subject, state, editedBy, requestedAt, expiresAt];
  });
  return table(session, ['id', 'kind', 'about', 'state', 'asked by', 'asked', 'expires'], rows);
}

export function renderRequested(session: Session, { approval, isNew }: Requested): string {
  const said = isNew ? 'asked for; nothing is done before somebody else approves it' : 'asked for already';
  return `${renderApproval(session, approval)}\n\n${said}`;
}

/** A request with exactly what its digest stands for, and the line that approves that. */
export function renderApproval(session: Session, approval: Approval): string {
  const { id, kind, subject, state, reason, digest, requestedBy, editedBy, decidedBy, staleReason } = approval;
  const lines = [
    `${kind.replaceAll('_', ' ')} ${subject}`,
    `  request   ${id}, revision ${approval.revision}`,
    `  state     ${state}${staleReason === null ? '' : `: ${staleReason}`}`,
    `  asked by  ${requestedBy}${editedBy === requestedBy ? '' : `, last edited by ${editedBy}`}, ${approval.requestedAt}`,
    `  because   ${reason}`,
    ...(decidedBy === null ? [] : [`  decided   by ${decidedBy}, ${approval.decidedAt ?? ''}`]),
    ...(approval.executedAt === null ? [] : [`  executed  by ${approval.executedBy ?? ''}, ${approval.executedAt}`]),
    `  expires   ${approval.expiresAt}`,
    `  digest    ${digest}`,
  ];
  const parts = [linesOf(lines), renderPlan(session, approval.plan)];
  if (state === 'requested') parts.push(`approve   ${approveCommand(id, digest)}`);
  if (state === 'approved') parts.push(`execute   ${executeCommand(id)}`);
  return parts.join('\n\n');
}

type Branch = Readonly<Record<string, unknown>>;

/** A plan as it was digested: a name and a value a line, a table for its periods or holds. Nothing of it is left out. */
export function renderPlan(session: Session, plan: unknown): string {
  if (!isBranch(plan)) return JSON.stringify(plan);
  const { periods, holds, ...rest } = plan;
  const lines = Object.entries(rest).map(([name, value]) => `  ${name.padEnd(12)} ${valueOf(value)}`);
  const parts = lines.length === 0 ? [] : [linesOf(lines)];
  if (Array.isArray(holds)) parts.push(renderRows(session, holds.filter(isBranch)));
  if (Array.isArray(periods)) parts.push(renderRows(session, periods.filter(isBranch)));
  return parts.join('\n\n');
}

function renderRows(session: Session, rows: readonly Branch[]): string {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const shown = rows.map((row) => names.map((name) => valueOf(row[name])));
  return table(session, names, shown);
}

function valueOf(value: unknown): string {
  if (value === null || value === undefined) return '-';
  if (Array.isArray(value)) return value.map(valueOf).join(', ');
  if (!isBranch(value)) return typeof value === 'string' ? value : JSON.stringify(value);
  if (isBranch(value['amounts'])) return `${String(value['subjects'])} subjects, ${amountsOf(value['amounts'])}`;
  return Object.entries(value)
    .map(([name, part]) => `${name} ${valueOf(part)}`)
    .join(', ');
}

/** `GBP net 1,250.00 payout 1,250.00`: minor units as people write them. */
function amountsOf(amounts: Branch): string {
  const parts = Object.entries(amounts).map(([currency, sums]) => {
    const written = Object.entries(isBranch(sums) ? sums : {}).map(
      ([name, amount]) => `${name} ${money(String(amount), currency)}`,
    );
    return `${currency} ${written.join(' ')}`;
  });
  return parts.length === 0 ? 'no amount' : parts.join('; ');
}

function isBranch(value: unknown): value is Branch {
  return typeof value === 'object' && value !== null;
}
