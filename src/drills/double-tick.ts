import { compareInstants } from '../kernel/instant.ts';
import { backfillCommand } from '../ops/commands.ts';
import { runsOfKey, type StoredRun } from '../store/runs.ts';
import { type Drill, type Fact, fact } from './drill.ts';
import { executedTransfers, factsOf } from './facts.ts';
import { delivered, keyEnd } from './key-end.ts';
import { importSample } from './sample-month.ts';
import type { Stage } from './stage.ts';
import { typed } from './typed.ts';
import { until } from './until.ts';

/** In New York the clock was put back at 02:00 on 1 November 2026: 01:30, when the schedule fires, came twice. */
const RULE = { zone: 'America/New_York', calendar: { dayOfMonth: 1, hour: 1, minute: 30 } };
const MONTH = '2026-10';
const [FIRST, SECOND] = ['2026-11-01T05:30:00Z', '2026-11-01T06:30:00Z'] as const;

/**
 * Temporal's own calendar fires twice for one local time, an hour apart and under two workflow ids; afterwards somebody
 * backfills the same hours again. All four ticks close one month. Ours is written out as one date there; this one is as somebody
 * types it in Temporal, or as an earlier release applied it.
 */
export const doubleTick: Drill = {
  name: 'double-tick',
  fault:
    'the schedule fires twice for a local time that comes twice, and both ticks are backfilled once more afterwards',
  guard: 'the key is made from the period that a tick closes, never from the tick, and the ledger has it once',
  async run({ setStage, tell }) {
    const stage = await setStage();
    const sample = await importSample(stage, {
      merchants: 20,
      months: 1,
      subjectsPerSlice: 10,
      rule: RULE,
      last: MONTH,
    });
    await stage.openGateway();
    await Promise.all([stage.start('worker'), stage.start('relay')]);
    await typed('npx onceper schedule apply settlement', stage.environment);
    await giveBackToTemporal(stage);
    const line = backfillCommand('settlement', FIRST, SECOND);
    tell(line);
    await typed(line, stage.environment);
    const ticks = await runs(stage, 2);
    const key = ticks[0]?.key ?? sample.key;
    if ((await keyEnd(stage, key)) === 'done') await delivered(stage, key);
    await typed(line, stage.environment);
    const all = await runs(stage, 4);
    const facts = await factsOf(stage.db, sample.registry, { key: sample.key, closing: '' }, stage.journal);
    return [
      ...factsOfTicks(ticks, all.slice(2)),
      fact('keys in the ledger', sample.key, await keys(stage)),
      fact('documents', 1, facts.documents),
      fact('transfers in the journal', facts.payable, executedTransfers(stage.journal, '').executed),
      fact('numbers executed twice', 0, facts.transfersTwice),
      ...Object.entries(facts.ledger).map(([currency, gap]) => fact(`ledger ${currency}`, 0, gap)),
    ];
  },
};

/** Lets Temporal's server read the calendar in the rule's zone by itself. */
async function giveBackToTemporal({ client }: Stage): Promise<void> {
  const { dayOfMonth, hour, minute } = RULE.calendar;
  await client.schedule.getHandle('settlement').update((found) => ({
    ...found,
    spec: { calendars: [{ dayOfMonth, hour, minute }], timezone: RULE.zone },
  }));
}

function factsOfTicks(ticks: readonly StoredRun[], again: readonly StoredRun[]): Fact[] {
  const times = ticks.flatMap((run) => run.scheduledAt ?? []).toSorted(compareInstants);
  const admitted = ticks.filter((run) => run.decision === 'admitted').length;
  const others = ticks.filter((run) => run.decision === 'in_progress' || run.decision === 'duplicate').length;
  return [
    fact('nominal times of the two ticks', `${FIRST}, ${SECOND}`, times.join(', ')),
    fact('ticks of them that were admitted', 1, admitted),
    fact('ticks that found the key taken or done', 1, others),
    fact('the backfilled ticks', 'duplicate, duplicate', again.map((run) => run.decision).join(', ')),
    fact('backfilled ticks known as repeats', 2, again.filter((run) => run.repeatOf !== null).length),
  ];
}

/** The runs of the job, oldest first, once there are so many and all are decided. */
async function runs(stage: Stage, count: number): Promise<readonly StoredRun[]> {
  return until(
    `${count} runs`,
    async () => {
      const found = await allRuns(stage);
      return found.length >= count ? found : null;
    },
    60_000,
  );
}

async function allRuns(stage: Stage): Promise<StoredRun[]> {
  const { rows } = await stage.db.query<{ key: string }>('select distinct key from onceper.run order by key');
  const found = await Promise.all(rows.map(({ key }) => runsOfKey(stage.db, key)));
  return found.flat().sort((a, b) => compareInstants(a.openedAt, b.openedAt));
}

async function keys(stage: Stage): Promise<string> {
  const { rows } = await stage.db.query<{ keys: string | null }>(
    `select string_agg(key, ', ' order by key) as keys from onceper.action`,
  );
  return rows[0]?.keys ?? 'none';
}
