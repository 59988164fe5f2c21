import { z } from 'zod';
import { foreignText } from '../../gateway/foreign-text.ts';
import { foundTransferShape, holdsHarmfulText, parseStated, parseTransfer } from '../../gateway/transfer.ts';
import type { Registry } from '../../jobs/registry.ts';
import { codeOf } from '../../kernel/error.ts';
import type { Tx } from '../../kernel/sql.ts';
import type { FoundTransfer } from '../../kernel/transfer.ts';
import type { EffectState } from '../../kernel/transitions.ts';
import { afterWebhook } from '../../kernel/webhook.ts';
import { type Database, transaction } from '../../store/database.ts';
import {
  decideWebhook,
  deferWebhook,
  dueWebhooks,
  lockToldEffect,
  lockWebhook,
  moveToldEffect,
  type Webhook,
  type WebhookState,
} from '../../store/webhooks.ts';

/** What applying works with. */
export interface WebhookServices {
  readonly db: Database;
  readonly jobs: Registry;
}

/** What became of a message; ids and codes only. `state` of the effect where it moved. */
export type WebhookEvent =
  | {
      readonly kind: 'decided';
      readonly id: string;
      readonly number: string | null;
      readonly decision: Exclude<WebhookState, 'stored'>;
      readonly code: string | null;
      readonly state: EffectState | null;
    }
  | { readonly kind: 'fault'; readonly id: string | null; readonly code: string; readonly message: string };

const messageShape = z.object({ type: foreignText(200), data: z.unknown() });
const subjectShape = z.object({ data: z.object({ reference: foreignText() }) });
const transferShape = z.object({ data: foundTransferShape });

const SETTINGS = { label: 'webhook', statementTimeout: 10_000, lockTimeout: 5_000, idleInTransactionTimeout: 5_000 };

/** 1 s, 2 s, 4 s, …: after eight tries, some four minutes, a person looks. */
const FAILED = { delayMs: 1_000, maxTries: 8 };

/**
 * The message of a body, or null where it states none: a counterparty must say at least what it is about. None is one whose
 * texts can't be kept: its sender is told so, instead of trying again for ever.
 */
export function readMessage(body: string): Pick<Webhook, 'type' | 'number'> | null {
  const message = parseStated(body, messageShape);
  if (message === null || holdsHarmfulText(message.data)) return null;
  return { type: message.type, number: parseStated(body, subjectShape)?.data.reference ?? null };
}

/**
 * Applies one stored message in a transaction of its own, conditional on its effect's state, raising the effect's fence and
 * posting its fate; asked twice, or by two processes at once, it is applied once. What fails is counted and tried again.
 */
export async function applyWebhook(
  services: WebhookServices,
  id: string,
  emit: (event: WebhookEvent) => void,
): Promise<void> {
  try {
    const decided = await transaction(services.db, SETTINGS, async (tx) => {
      const webhook = await lockWebhook(tx, id);
      if (webhook === null) return null;
      const decision = await decide(services.jobs, tx, webhook);
      const { detail, ...said } = decision;
      await decideWebhook(tx, id, { state: said.decision, code: said.code, detail });
      return { kind: 'decided' as const, id, number: webhook.number, ...said };
    });
    if (decided !== null) emit(decided);
  } catch (error) {
    emit(faultOf(id, error));
    await defer(services, id, codeOf(error) ?? 'unexpected', emit);
  }
}

/** Applies every stored message that is due, `limit` at most: what a process that died had stored is not lost. */
export async function applyDueWebhooks(
  services: WebhookServices,
  limit: number,
  emit: (event: WebhookEvent) => void,
): Promise<number> {
  try {
    const ids = await dueWebhooks(services.db, limit);
    for (const id of ids) await applyWebhook(services, id, emit);
    return ids.length;
  } catch (error) {
    emit(faultOf(null, error));
    return 0;
  }
}

/** `detail` says what differs, with amounts: it is for the ledger and for no log. */
interface Decision {
  readonly decision: Exclude<WebhookState, 'stored'>;
  readonly code: string | null;
  readonly state: EffectState | null;
  readonly detail: string | null;
}

async function decide(jobs: Registry, tx: Tx, webhook: Webhook): Promise<Decision> {
  if (!webhook.type.startsWith('transfer.')) return decided('ignored', 'other_type');
  const transfer: FoundTransfer | null = parseStated(webhook.body, transferShape)?.data ?? null;
  if (transfer === null) return decided('attention', 'malformed_transfer');
  const effect = await lockToldEffect(tx, transfer.reference);
  if (effect === null) return decided('attention', 'unknown_number');
  const told = afterWebhook(effect, parseTransfer(effect.body), webhook.type, transfer);
  if (told.kind === 'stale') return decided('stale', null);
  if (told.kind === 'attention') return decided('attention', told.code, told.detail);
  const { state, code } = told.verdict;
  const job = jobs.get(effect.job);
  const fence = await moveToldEffect(tx, effect, told.verdict, (inner, fates) => job.settleEffects(inner, fates));
  if (fence === null) throw new Error(`the locked effect ${effect.number} changed`);
  // One that is looked up next moves by what is found there; what was said otherwise is still a person's to see.
  const decision = state === 'unknown' && told.detail !== null ? 'attention' : 'applied';
  return { decision, code, state, detail: told.detail };
}

function decided(decision: Decision['decision'], code: string | null, detail: string | null = null): Decision {
  return { decision, code, state: null, detail };
}

async function defer(
  { db }: WebhookServices,
  id: string,
  code: string,
  emit: (event: WebhookEvent) => void,
): Promise<void> {
  try {
    await deferWebhook(db, id, { code, ...FAILED });
  } catch (error) {
    // The database is away: the message stays stored and due.
    emit(faultOf(id, error));
  }
}

function faultOf(id: string | null, error: unknown): WebhookEvent {
  const message = error instanceof Error ? error.message : String(error);
  return { kind: 'fault', id, code: codeOf(error) ?? 'unexpected', message };
}
