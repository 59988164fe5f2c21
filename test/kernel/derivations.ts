import { firingsAfter } from '../../src/kernel/firing.ts';
import { formatAmount, parseAmount } from '../../src/kernel/money.ts';
import { periodBounds, periodClosedBy, periodOfDate } from '../../src/kernel/period.ts';
import { canonicalName } from '../../src/kernel/subject.ts';
import { localDate } from '../../src/kernel/zone-clock.ts';

const zones = ['Asia/Kolkata', 'Pacific/Kiritimati', 'America/Los_Angeles', 'America/Sao_Paulo', 'UTC'];
const nominals = ['2026-09-30T19:00:00Z', '2026-09-30T10:30:00Z', '2026-10-01T00:00:00Z', '2018-11-04T02:59:59Z'];

/** What the kernel derives for inputs near the ends of months and days, as one text to compare between processes. */
export function derivations(): string {
  const periods = zones.flatMap((zone) => {
    const calendar = { kind: 'month', zone } as const;
    return nominals.map((nominal) => {
      const period = periodClosedBy(nominal, calendar);
      const dates = [localDate(nominal, { zone }), periodOfDate(localDate(nominal, { zone }), { kind: 'week', zone })];
      return { zone, nominal, dates, ...periodBounds(period, calendar) };
    });
  });
  const firings = firingsAfter({ zone: 'Europe/London', hour: 1, minute: 30 }, '2026-10-23T00:00:00Z', 5);
  const amount = formatAmount(parseAmount('1234567.89', 'GBP'), 'GBP');
  return JSON.stringify({ periods, firings, amount, name: canonicalName('ISTANBUL TİCARET IŞIK') });
}
