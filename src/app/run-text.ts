import { HAS_RESULT } from '../kernel/transitions.ts';
import { pauseInWords } from '../ops/destinations.ts';
import { resultInWords } from '../ops/document.ts';
import type { RunReport } from '../ops/run-report.ts';
import { waitsForPause } from '../ops/why-effects.ts';
import { linesOf, oneLine } from './terminal.ts';

/** What is going on with a run's key, in one line. */
export function sentenceOf(report: RunReport): string {
  const { key, state, slices, stalled, reason } = report;
  if (state === null) return `${key} waits: ${reason ?? 'no decision yet'}`;
  const progress = slices.total === 0 ? '' : `, ${slices.done} of ${slices.total} slices done`;
  return `${key} is ${state}${stalled ? ' and stalled: no worker holds it' : ''}${progress}`;
}

/** What the payouts wait for, and what nobody is paid of before a person says so. */
function moneyLines({ key, effects, pause }: RunReport): string[] {
  const lines: string[] = [];
  if (pause !== null && waitsForPause({ effects, pause })) lines.push(`  waits     ${pauseInWords(pause)}`);
  const held = (effects['failed'] ?? 0) + (effects['returned'] ?? 0);
  if (held > 0) lines.push(`  holds     ${held} payouts failed or came back: npx onceper hold list --key ${key ?? ''}`);
  return lines;
}

/** A run's report for a person. */
export function renderRun(report: RunReport): string {
  const { key, run, decision, result, document, reason, owner, state } = report;
  const lines = [`run ${run}`, `  key       ${key ?? 'none'}`, `  decision  ${decision ?? 'none yet'}`];
  if (reason !== null) lines.push(`  because   ${reason}`);
  if (owner !== null && owner !== run) lines.push(`  owner     run ${owner}`);
  if (state !== null) lines.push(`  state     ${state}`);
  if (document !== null) lines.push(`  document  ${document.id}`);
  else if (state !== null && HAS_RESULT.has(state)) lines.push(`  result    ${oneLine(resultInWords(result))}`);
  for (const name of ['effects', 'notices'] as const) {
    const counts = Object.entries(report[name]).map(([known, count]) => `${count} ${known}`);
    if (counts.length > 0) lines.push(`  ${name}   ${counts.join(', ')}`);
  }
  lines.push(...moneyLines(report));
  if (decision === 'held') lines.push(`  approval  npx onceper approvals list --key ${key}`);
  else if (key !== null) lines.push(`  more      npx onceper why ${key}`);
  return linesOf(lines);
}
