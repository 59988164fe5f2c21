/**
 * Rules whose calendars skip, repeat or move what they state, each to be looked at for three years from its first period: what used
 * to stop a job for ever, and what stands beside it. The last one is as plain as most.
 */
export const SAMPLES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'sydney-over-a-gap': monthly('Australia/Sydney', '2021-01', { dayOfMonth: 1, hour: 2, minute: 30 }),
  'sydney-skipping-gaps': monthly('Australia/Sydney', '2021-01', { dayOfMonth: 1, hour: 2, minute: 30, gap: 'skip' }),
  santiago: daily('America/Santiago', '2023-06-01', { hour: 0, minute: 30 }),
  nuuk: daily('America/Nuuk', '2023-06-01', { hour: 23, minute: 30 }),
  'lord-howe': daily('Australia/Lord_Howe', '2023-06-01', { hour: 2, minute: 15 }),
  'lord-howe-second': daily('Australia/Lord_Howe', '2023-06-01', { hour: 1, minute: 45, repeated: 'second' }),
  apia: daily('Pacific/Apia', '2010-06-01', { hour: 0, minute: 30 }),
  'new-york-repeated': daily('America/New_York', '2023-06-01', { hour: 1, minute: 30 }),
  'the-29th-in-london': monthly('Europe/London', '2021-01', { dayOfMonth: 29, hour: 1, minute: 30 }),
  'the-30th-in-new-york': monthly('America/New_York', '2021-01', { dayOfMonth: 30, hour: 2, minute: 0 }),
  'the-31st-in-shanghai': monthly('Asia/Shanghai', '2021-01', { dayOfMonth: 31, hour: 2, minute: 0 }),
  'days-on-mondays': daily('Europe/London', '2023-06-01', { dayOfWeek: 1, hour: 6, minute: 0 }),
  'the-last-day': monthly('Europe/London', '2021-01', { dayOfMonth: -1, hour: 18, minute: 0 }),
  'the-last-business-day': monthly('Europe/London', '2021-01', {
    dayOfMonth: -1,
    hour: 18,
    minute: 0,
    businessDays: { holidays: ['2021-12-31', '2022-05-30', '2022-05-31'], otherwise: 'previous' },
  }),
  'plain-in-london': monthly('Europe/London', '2021-01', { dayOfMonth: 1, hour: 6, minute: 0 }),
};

function monthly(zone: string, first: string, calendar: Readonly<Record<string, unknown>>) {
  return { zone, period: 'month', first, calendar };
}

function daily(zone: string, first: string, calendar: Readonly<Record<string, unknown>>) {
  return { zone, period: 'day', first, calendar };
}
