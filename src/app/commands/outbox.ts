import type { Command } from 'commander';
import { FATES_BY_HAND, type FateByHand } from '../../kernel/by-hand.ts';
import { movesMoney } from '../../kernel/effect-number.ts';
import { parseKey } from '../../kernel/key.ts';
import { EFFECT_LIFE, type EffectState } from '../../kernel/transitions.ts';
import { listOutbox, retryEffect, showEffect } from '../../ops/outbox.ts';
import { cleanOutbox } from '../../ops/outbox-clean.ts';
import { askFor, reasonOf } from '../approval-request.ts';
import { type Act, type AddCommand, command, noun } from '../command.ts';
import { drainOnSignal } from '../drain.ts';
import { EXIT } from '../exit-codes.ts';
import { usage } from '../fault.ts';
import { duration, statesOf, wholeNumber } from '../options.ts';
import { renderActed, renderCleaned, renderEntry, renderList } from '../outbox-text.ts';
import { createProcessLog } from '../services.ts';

/** `outbox list|show|retry|resolve|clean`: effects that wait for a person, and what a person may do about them. */
export const addOutbox: AddCommand = (program, act) => {
  const outbox = noun(program, 'outbox', 'effects that wait for a person, and what a person may do about them');
  addList(outbox, act);
  addShow(outbox, act);
  addRetry(outbox, act);
  addResolve(outbox, act);
  addClean(outbox, act);
};

interface ListOptions {
  readonly state: readonly EffectState[];
  readonly key?: string;
  readonly after?: string;
  readonly limit: number;
}

/** What `list` shows when nothing is asked for. */
const FOR_A_PERSON: readonly EffectState[] = ['needs_attention', 'dead'];

function addList(outbox: Command, act: Act): void {
  command(outbox, 'list', {
    summary: 'effects that wait for a person, of one key or of all, and webhooks that nobody could apply',
    example: 'npx onceper outbox list --state needs_attention,dead --key settlement:2026-09',
  })
    .option('--state <states>', 'states, with commas between them', statesOf(EFFECT_LIFE, 'an effect'), FOR_A_PERSON)
    .option('--key <key>', 'of this key only')
    .option('--after <number>', 'begin behind this effect number')
    .option('--limit <n>', 'at most so many', wholeNumber('--limit', 1, 10_000), 50)
    .action(
      act(async (session, options: ListOptions) => {
        const { state: states, key = null, after = null, limit } = options;
        if (key !== null) parseKey(key);
        const list = await session.withDatabase((db) => listOutbox(db, { states, key, after, limit }));
        session.answer(list, renderList(session, list));
        return EXIT.done;
      }),
    );
}

function addShow(outbox: Command, act: Act): void {
  command(outbox, 'show <number>', {
    summary: 'one effect: its body, every call and webhook about it, and what people did to it',
    example: 'npx onceper outbox show settlement:2026-09:m-1001:GBP:payout',
  }).action(
    act(async (session, number: string) => {
      const entry = await session.withDatabase((db) => showEffect(db, number));
      session.answer(entry, renderEntry(session, entry));
      return EXIT.done;
    }),
  );
}

function addRetry(outbox: Command, act: Act): void {
  command(outbox, 'retry <number>', {
    summary: 'give an effect back to the relay under its own number, looked up first; of a dead one, ask for that',
    example: 'npx onceper outbox retry settlement:2026-09:m-1001:GBP:payout --reason "account reopened"',
  })
    .requiredOption('--reason <reason>', 'why, for the record')
    .action(
      act(async (session, number: string, options: { readonly reason: string }) => {
        const reason = reasonOf(options);
        const { effect } = await session.withDatabase((db) => showEffect(db, number));
        if (effect.state === 'dead' && movesMoney(number))
          return askFor(session, { kind: 'retry_effect', ask: { number }, reason });
        const ask = { number, actor: (await session.actor()).id, reason };
        const acted = await session.withDatabase((db) => retryEffect(db, ask));
        session.answer(acted, renderActed(acted));
        return EXIT.done;
      }),
    );
}

interface ResolveOptions {
  readonly as: FateByHand;
  readonly reason: string;
  readonly counterpartyId?: string;
}

function addResolve(outbox: Command, act: Act): void {
  command(outbox, 'resolve <number>', {
    summary:
      'ask that it be recorded what became of an effect, from proof that the counterparty’s interface does not give',
    example:
      'npx onceper outbox resolve settlement:2026-09:m-1001:GBP:payout --as succeeded --counterparty-id tr_7 --reason "bank letter"',
  })
    .requiredOption('--as <outcome>', `what became of it: ${FATES_BY_HAND.join(', ')}`, fate)
    .requiredOption('--reason <reason>', 'what proves it, for the record')
    .option('--counterparty-id <id>', 'the transfer’s id at the counterparty; needed where it was made')
    .action(
      act(async (session, number: string, options: ResolveOptions) => {
        const { as, counterpartyId = null } = options;
        const reason = reasonOf(options);
        return askFor(session, { kind: 'resolve_effect', ask: { number, as, counterpartyId }, reason });
      }),
    );
}

function addClean(outbox: Command, act: Act): void {
  command(outbox, 'clean', {
    summary: 'delete old records of calls about finished effects, in small batches; the effects stay for good',
    example: 'npx onceper outbox clean --older-than 90d',
  })
    .requiredOption('--older-than <age>', 'at least a day, for example 90d', duration('--older-than'))
    .action(
      act(async (session, { olderThan }: { readonly olderThan: number }) => {
        if (olderThan < DAY_MS) throw usage('that is younger than a day', '--older-than', 'for example 90d');
        const signal = drainOnSignal(createProcessLog(session.config, 'clean'), session.config.drainGraceMs);
        const cleaned = await session.withDatabase((db) => cleanOutbox(db, { olderMs: olderThan, signal }));
        session.answer(cleaned, renderCleaned(cleaned));
        return cleaned.kind === 'busy' ? EXIT.underWay : EXIT.done;
      }),
    );
}

const DAY_MS = 86_400_000;

function fate(text: string): FateByHand {
  const known = FATES_BY_HAND.find((name) => name === text);
  if (known !== undefined) return known;
  throw usage(`'${text}' is no outcome`, `--as ${text}`, `one of ${FATES_BY_HAND.join(', ')}`);
}
