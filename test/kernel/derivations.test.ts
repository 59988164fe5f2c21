import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { derivations } from './derivations.ts';

const script = fileURLToPath(new URL('print-derivations.ts', import.meta.url));

/** Prints the derivations in a Node process of its own, started with this time zone and locale. */
async function derivedWith(TZ: string, locale: string): Promise<string> {
  const env = { PATH: process.env['PATH'], TZ, LANG: locale, LC_ALL: locale };
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', script], { env });
  return stdout;
}

it.each([
  ['Asia/Tokyo', 'ja_JP.UTF-8'],
  ['America/New_York', 'tr_TR.UTF-8'],
  ['Pacific/Kiritimati', 'C'],
])(
  'periods, instants, amounts and names do not depend on TZ=%s and LANG=%s of the process',
  async (TZ, locale) => {
    const derived = await derivedWith(TZ, locale);
    expect(derived).toBe(derivations());
    expect(derived).toContain('"period":"2026-08"');
  },
  30_000,
);
