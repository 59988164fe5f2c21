import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Anchor } from '../../../src/kernel/audit.ts';
import { anchorOf, anchorsIn, isSignedBy } from '../../../src/ops/audit/anchors.ts';
import { findingText } from '../../../src/ops/audit/finding.ts';
import { type Verified, verifyAudit } from '../../../src/ops/audit/verify.ts';
import { appendAudit, auditHead } from '../../../src/store/audit.ts';
import { type Database, transaction } from '../../../src/store/database.ts';
import type { TestDatabase } from '../../support/database.ts';
import { testPool } from '../../support/ledger.ts';
import { appendMany, chainOf, renumber, tamper } from './chain.ts';

let database: TestDatabase;
let db: Database;
/** The head after five of the ten entries, and after all of them. */
let middle: Anchor;
let end: Anchor;

beforeEach(async () => {
  const chain = await chainOf((url) => testPool(url, 4), 5);
  ({ database, db } = chain);
  middle = anchorOf(chain.head, null);
  await appendMany(db, 5);
  end = anchorOf(await auditHead(db), null);
});
afterEach(async () => {
  await db.close();
  await database.drop();
});

const verify = (anchors: readonly Anchor[] = []): Promise<Verified> => verifyAudit(db, { anchors, key: null, page: 3 });

/** What verifying names, without anchors unless they are given. */
async function named(anchors: readonly Anchor[] = []): Promise<readonly string[]> {
  const { findings, ok } = await verify(anchors);
  expect(ok).toBe(findings.length === 0);
  return findings.map(findingText);
}

const copyOf = (row: number, as: number) =>
  `insert into onceper.audit (seq, at, actor, verb, job, key, run, subject, detail, previous, hash)
   select ${as}, at, 'os:eve', verb, job, key, run, subject, detail, previous, hash from onceper.audit where seq = ${row}`;

test('an untouched chain holds, with its anchors and without', async () => {
  const verified = await verify([middle, end]);
  expect(verified).toMatchObject({ ok: true, entries: 10n, head: { seq: 10n }, anchors: 2, found: 0 });
  expect(await named()).toEqual([]);
});

test('an empty audit holds', async () => {
  await tamper(db, async (tx) => {
    await tx.query('delete from onceper.audit');
    await tx.query(`update onceper.audit_head set seq = 0, hash = repeat('0', 64)`);
  });
  expect(await verify()).toMatchObject({ ok: true, entries: 0n });
  expect(await named([end])).toEqual(['the tail was cut: rows 1 to 10 were there once']);
});

describe('tampering is found and named', () => {
  test.each([
    ['its actor', `actor = 'os:eve'`],
    ['its detail', `detail = '{"n":4000}'`],
    ['its instant, by a microsecond', `at = at + interval '1 microsecond'`],
    ['its key, to none', 'key = null'],
    ['the spelling of its detail alone', `detail = replace(detail, ',', ', ')`],
    ['its detail, to no JSON', `detail = '{'`],
    ['its hash', `hash = repeat('a', 64)`],
  ])('1: a row edited in %s', async (_, change) => {
    await tamper(db, (tx) => tx.query(`alter table onceper.audit drop constraint audit_detail_is_object`));
    await tamper(db, (tx) => tx.query(`update onceper.audit set ${change} where seq = 4`));
    expect(await named()).toContain('row 4 was edited: it is not what its hash was made from');
  });

  test('2: a row edited and hashed anew', async () => {
    await tamper(db, (tx) => tx.query(`update onceper.audit set actor = 'os:eve' where seq = 4`), {
      from: 4,
      until: 4,
    });
    expect(await named()).toEqual(['row 4 was edited and hashed anew: what follows it was chained to another row']);
  });

  test('2: the last row edited and hashed anew', async () => {
    await tamper(db, (tx) => tx.query(`update onceper.audit set actor = 'os:eve' where seq = 10`), { from: 10 });
    expect(await named()).toEqual(['row 10 was edited and hashed anew: what follows it was chained to another row']);
  });

  test('3: rows deleted', async () => {
    await tamper(db, (tx) => tx.query('delete from onceper.audit where seq in (1, 5, 6)'));
    expect(await named()).toEqual(['row 1 was deleted', 'rows 5 to 6 were deleted']);
  });

  test('4: a row deleted, and those behind it renumbered', async () => {
    await tamper(db, async (tx) => {
      await tx.query('delete from onceper.audit where seq = 5');
      await renumber(tx, 6, -1);
    });
    expect(await named([middle, end])).toEqual(['row 5 was deleted, and what followed was renumbered']);
  });

  test('5: two rows swapped, near or far, by their numbers', async () => {
    for (const [one, other] of [
      [5, 6],
      [2, 9],
    ]) {
      const swap = `update onceper.audit set seq = case seq when ${one} then ${other} when ${other} then ${one} else seq + 500 end`;
      await tamper(db, async (tx) => {
        await tx.query('alter table onceper.audit drop constraint audit_pk');
        await tx.query(`${swap} where seq in (${one}, ${other})`);
      });
      expect(await named([middle, end])).toEqual([`row ${one} and row ${other} were swapped`]);
      await tamper(db, async (tx) => {
        await tx.query(`${swap} where seq in (${one}, ${other})`);
        await tx.query('alter table onceper.audit add constraint audit_pk primary key (seq)');
      });
    }
    expect(await named()).toEqual([]);
  });

  test('5: what two rows say swapped, each in its place of the chain', async () => {
    await tamper(db, (tx) =>
      tx.query(
        `update onceper.audit a set (actor, verb, run, detail) = (select b.actor, b.verb, b.run, b.detail from onceper.audit b
           where b.seq = 10 - a.seq) where seq in (3, 7)`,
      ),
    );
    expect(await named()).toEqual(['row 3 and row 7 were swapped']);
  });

  test('6: a row inserted, and those behind it renumbered', async () => {
    await tamper(db, async (tx) => {
      await renumber(tx, 5, 1);
      await tx.query(copyOf(4, 5));
    });
    expect(await named([middle, end])).toEqual(['row 5 was inserted: no append made it']);
  });

  test('6: a row inserted with a hash that fits, and those behind it renumbered', async () => {
    await tamper(
      db,
      async (tx) => {
        await renumber(tx, 5, 1);
        await tx.query(copyOf(4, 5));
      },
      { from: 5, until: 5 },
    );
    expect(await named()).toEqual(['row 5 was inserted: no append made it']);
  });

  test('6: a row inserted behind the last one', async () => {
    await tamper(db, (tx) => tx.query(copyOf(10, 11)), { from: 11 });
    expect(await named()).toEqual(['row 11 was inserted: no append made it']);
  });

  test('7: the tail cut shows against the head, and against an anchor where the head was moved back', async () => {
    await tamper(db, (tx) => tx.query('delete from onceper.audit where seq > 7'));
    expect(await named()).toEqual(['the tail was cut: rows 8 to 10 were there once']);
    await tamper(db, () => Promise.resolve(), { from: 8, moveHead: true });
    expect(await named()).toEqual([]);
    expect(await named([middle, end])).toEqual(['the tail was cut: rows 8 to 10 were there once']);
  });

  test('8: a chain rewritten whole shows against an anchor only, which says between which rows', async () => {
    await tamper(db, (tx) => tx.query(`update onceper.audit set actor = 'os:eve' where seq = 7`), {
      from: 7,
      moveHead: true,
    });
    expect(await named()).toEqual([]);
    expect(await named([middle])).toEqual([]);
    expect(await named([middle, end])).toEqual([
      'the chain was rewritten: row 10 is not the one that was anchored, so some row after 5 was changed',
    ]);
  });

  test('several at once, each by its row', async () => {
    await tamper(db, async (tx) => {
      await tx.query(`update onceper.audit set actor = 'os:eve' where seq in (2, 8)`);
      await tx.query('delete from onceper.audit where seq in (5, 10)');
    });
    expect(await named()).toEqual([
      'row 2 was edited: it is not what its hash was made from',
      'row 5 was deleted',
      'row 8 was edited: it is not what its hash was made from',
      'the tail was cut: row 10 was there once',
    ]);
  });
});

test('appends that go on meanwhile are no finding', async () => {
  const appending = Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      transaction(db, {}, (tx) =>
        appendAudit(tx, { actor: 'os:p', verb: 'grant', job: null, key: null, run: null, detail: { n } }),
      ),
    ),
  );
  const verified = await Promise.all([verify([end]), verify([end]), verify([end])]);
  await appending;
  expect(verified.map(({ ok }) => ok)).toEqual([true, true, true]);
});

describe('anchors', () => {
  const { privateKey } = generateKeyPairSync('ed25519');
  const publicKey = createPublicKey(privateKey);

  test('are read from a log among its other lines; a head that did not move is one', async () => {
    const signed = anchorOf(await auditHead(db), privateKey);
    const line = JSON.stringify({ level: 'info', event: 'audit_anchor', ...signed });
    const read = await anchorsIn(['{"event":"action_done"}', 'npm notice "hash"', line, line, '{"hash":1}'], 'x.log');
    expect(read).toEqual([signed]);
    await expect(anchorsIn(['{"event":"action_done"}'], 'x.log')).rejects.toMatchObject({ code: 'no_anchor' });
  });

  test('count only when the key signed them, and each that it did not is named', async () => {
    const good = anchorOf(await auditHead(db), privateKey);
    const forged = { ...good, hash: '0'.repeat(64) };
    expect(
      [good, forged, { ...good, at: '2020-01-01T00:00:00Z' }, end].map((one) => isSignedBy(one, publicKey)),
    ).toEqual([true, false, false, false]);
    const verified = await verifyAudit(db, { anchors: [middle, forged, good], key: publicKey });
    expect(verified.findings.map(findingText)).toEqual([
      "the anchor of row 5 can't be trusted: it is not signed",
      "the anchor of row 10 can't be trusted: its signature is not of this key",
    ]);
    expect(await verifyAudit(db, { anchors: [good], key: publicKey })).toMatchObject({
      ok: true,
      signaturesChecked: true,
    });
  });

  test('that contradict each other are named', async () => {
    expect(await named([end, { ...end, hash: 'f'.repeat(64) }])).toContain(
      "the anchor of row 10 can't be trusted: two anchors of it differ",
    );
  });
});
