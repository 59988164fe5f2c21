import { createPublicKey } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import { normaliseActorId } from '../../kernel/actor.ts';
import { type Anchor, AUDIT_VERBS, type AuditVerb } from '../../kernel/audit.ts';
import { OnceperError } from '../../kernel/error.ts';
import { normaliseInstant } from '../../kernel/instant.ts';
import { anchorsIn } from '../../ops/audit/anchors.ts';
import { findingText } from '../../ops/audit/finding.ts';
import { type AuditList, listAudit } from '../../ops/audit/list.ts';
import type { CheckToken } from '../../ops/audit/proofs.ts';
import { type Verified, verifyAudit } from '../../ops/audit/verify.ts';
import { readKey, whyUnproven } from '../actor.ts';
import { type Act, type AddCommand, command, noun } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { usage } from '../fault.ts';
import { wholeNumber } from '../options.ts';
import type { Session } from '../session.ts';
import { table } from '../table.ts';
import { linesOf } from '../terminal.ts';
import { rememberedAnchor } from '../watch.ts';

/** `audit list|verify`: who did what, and whether nobody has changed it. */
export const addAudit: AddCommand = (program, act) => {
  const audit = noun(program, 'audit', 'who did what, and whether nobody has changed it');
  addList(audit, act);
  addVerify(audit, act);
};

interface ListOptions {
  readonly job?: string;
  readonly key?: string;
  readonly actor?: string;
  readonly verb?: AuditVerb;
  readonly from?: string;
  readonly to?: string;
  readonly before?: bigint;
  readonly limit: number;
}

function addList(audit: Command, act: Act): void {
  command(audit, 'list', {
    summary: 'what was done, newest first, a page at a time',
    example: 'npx onceper audit list --key settlement:2026-09 --verb grant',
  })
    .option('--job <job>', 'of this job only')
    .option('--key <key>', 'of this key only')
    .option('--actor <id>', 'by this actor only, for example user:alice')
    .option('--verb <verb>', `this only: ${AUDIT_VERBS.join(', ')}`, verb)
    .option('--from <instant>', 'from this instant on', normaliseInstant)
    .option('--to <instant>', 'before this instant', normaliseInstant)
    .option('--before <n>', 'go on before this number', entryNumber)
    .option('--limit <n>', 'at most so many', wholeNumber('--limit', 1, 10_000), 50)
    .action(
      act(async (session, options: ListOptions) => {
        const { job = null, key = null, verb: only = null, from = null, to = null, before = null, limit } = options;
        const actor = options.actor === undefined ? null : normaliseActorId(options.actor);
        const ask = { job, key, actor, verb: only, from, to, before, limit };
        const list = await session.withDatabase((db) => listAudit(db, ask));
        session.answer(list, renderList(session, list));
        return EXIT.done;
      }),
    );
}

interface VerifyOptions {
  readonly anchor?: string;
  readonly temporal?: true;
}

function addVerify(audit: Command, act: Act): void {
  command(audit, 'verify', {
    summary: 'walk the whole chain and name every row that was changed; exit code 6 where one was',
    example: 'npx onceper audit verify --anchor worker.log --temporal',
  })
    .option('--anchor <file>', 'compare with the anchors in this file, for example a worker’s log')
    .option('--temporal', 'compare with the anchor that Temporal remembers')
    .action(
      act(async (session, options: VerifyOptions) => {
        const { auditKey } = session.config;
        const key = auditKey === null ? null : readKey(auditKey, 'ONCEPER_AUDIT_KEY', createPublicKey);
        const anchors = [
          ...(await anchorsOfFile(session, options.anchor)),
          ...(await anchorOfTemporal(session, options)),
        ];
        const { identity } = session.config;
        const checkToken: CheckToken = (token, actor, at) => whyUnproven(token, actor, identity, at);
        const ask = { anchors, key, checkToken: identity.tokenKey === null ? null : checkToken };
        const verified = await session.withDatabase((db) => verifyAudit(db, ask));
        const findings = verified.findings.map((finding) => ({ ...finding, text: findingText(finding) }));
        session.answer({ ...verified, findings }, renderVerified(verified));
        return verified.ok ? EXIT.done : EXIT.attention;
      }),
    );
}

async function anchorsOfFile(session: Session, file: string | undefined): Promise<readonly Anchor[]> {
  if (file === undefined) return [];
  const lines = createInterface({
    input: createReadStream(session.pathOfFile(file)),
    crlfDelay: Number.POSITIVE_INFINITY,
  });
  try {
    return await anchorsIn(lines, file);
  } catch (error) {
    if (error instanceof OnceperError) throw error;
    throw new OnceperError({
      code: 'file_unreadable',
      message: `it can't be read: ${error instanceof Error ? error.message : String(error)}`,
      remedy: 'give the file of a worker’s log',
      at: file,
      cause: error,
    });
  }
}

async function anchorOfTemporal(session: Session, { temporal }: VerifyOptions): Promise<readonly Anchor[]> {
  if (temporal !== true) return [];
  const anchor = await session.withTemporal(rememberedAnchor);
  if (anchor !== null) return [anchor];
  throw new OnceperError({
    code: 'no_anchor',
    message: 'Temporal remembers no anchor of the audit',
    remedy: 'a worker that runs makes one every minute: npx onceper worker',
    at: 'onceper-epoch',
  });
}

function renderList(session: Session, { entries, next }: AuditList): string {
  if (entries.length === 0) return 'nothing of that was done';
  const rows = entries.map(({ seq, at, actor, verb: did, job, key, run, subject, detail }) => [
    seq.toString(),
    at,
    actor,
    did,
    subject ?? key ?? job ?? run ?? '',
    typeof detail === 'string' ? detail : JSON.stringify(detail),
  ]);
  const more = next === null ? '' : `\n\nmore: the same with --before ${next}`;
  return table(session, ['number', 'at', 'actor', 'did', 'to', 'detail'], rows, ['number']) + more;
}

function renderVerified(verified: Verified): string {
  const { ok, entries, head, anchors, signaturesChecked, found, findings, decisions } = verified;
  const { proven, unchecked, byLogin } = decisions;
  const decided = `${proven + unchecked + byLogin} decisions: ${proven} proven by their tokens, ${unchecked} not checked, ${byLogin} by a login that needs none`;
  const checked = signaturesChecked ? 'signed' : 'their signatures not checked (ONCEPER_AUDIT_KEY is not set)';
  const against =
    anchors === 0 ? 'no anchor: a tail cut with its head would not show' : `${anchors} anchors, ${checked}`;
  if (ok) return linesOf([`${entries} entries hold, up to ${head.seq} ${head.hash}; ${against}`, decided]);
  const more = found > findings.length ? [`and ${found - findings.length} more`] : [];
  return linesOf([
    `the audit does not hold (${against}):`,
    ...findings.map((one) => `  ${findingText(one)}`),
    ...more,
    decided,
  ]);
}

function verb(text: string): AuditVerb {
  const known = AUDIT_VERBS.find((name) => name === text);
  if (known !== undefined) return known;
  throw usage(`'${text}' is never audited`, `--verb ${text}`, `one of ${AUDIT_VERBS.join(', ')}`);
}

function entryNumber(text: string): bigint {
  if (/^\d{1,18}$/.test(text)) return BigInt(text);
  throw usage(`'${text}' is no number of an entry`, `--before ${text}`, 'take it from the end of the list before');
}
