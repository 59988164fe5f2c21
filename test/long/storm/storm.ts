import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import Table from 'cli-table3';
import { type Report, runStorm } from './run-storm.ts';
import { sizeOf } from './sizes.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    faults: { type: 'string' },
    seconds: { type: 'string' },
    months: { type: 'string' },
    merchants: { type: 'string' },
    slice: { type: 'string' },
    only: { type: 'string', multiple: true, default: [] },
    short: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    report: { type: 'string' },
  },
});

const size = sizeOf(Number(values.seed), values.short);
const given = (text: string | undefined, usual: number) => (text === undefined ? usual : Number(text));
const faults = given(values.faults, size.faults);
const seconds = given(values.seconds, values.faults === undefined ? size.seconds : (faults * 2) / 3);

process.stderr.write(`storm: seed ${size.seed}, ${faults} faults in ${seconds} s\n`);
const report = await runStorm({
  ...size,
  faults,
  seconds,
  only: values.only,
  terms: {
    ...size.terms,
    months: given(values.months, size.terms.months),
    merchants: given(values.merchants, size.terms.merchants),
    subjectsPerSlice: given(values.slice, size.terms.subjectsPerSlice),
  },
  keep: values.keep,
  tell: (sentence) => process.stderr.write(`storm: ${sentence}\n`),
});
if (values.report !== undefined) writeFileSync(values.report, `${JSON.stringify(report, null, 2)}\n`);
process.stdout.write(`${rendered(report)}\n`);
process.exitCode = isSound(report) ? 0 : 1;

function isSound({ violations, neverHit, left }: Report): boolean {
  // A short storm has one fault of a kind, which may meet another; the long one must have hit with every kind.
  return violations.length === 0 && (values.short || neverHit.length === 0) && left === null;
}

function rendered(report: Report): string {
  const style = { compact: true, head: [], border: [] };
  const kinds = new Table({ head: ['fault', 'fell', 'hit'], style });
  for (const [name, { fell, hit }] of Object.entries(report.kinds)) kinds.push([name, fell, hit]);
  const checks = new Table({ head: ['invariant', 'checks', 'violations'], style });
  for (const [name, count] of Object.entries(report.checks)) {
    checks.push([name, count, report.violations.filter(({ invariant }) => invariant === name).length]);
  }
  const typed = Object.entries(report.typed).map(([line, times]) => `${line} ${times}`);
  const hitKinds = Object.values(report.kinds).filter(({ hit }) => hit > 0).length;
  return [
    kinds.toString(),
    checks.toString(),
    `typed by people: ${typed.join(', ')}`,
    ...report.neverHit.map((name) => `never hit: ${name}`),
    ...(report.left === null ? [] : [`not at rest: ${JSON.stringify(report.left)}`]),
    ...report.violations.slice(0, 20).map(({ invariant, witness }) => `VIOLATION ${invariant}: ${witness}`),
    ...(isSound(report) ? [] : [`evidence: ${report.folder}`, `again: ${lineOf(report)}`]),
    `seed ${report.seed} at ${report.commit}: ${report.faults} faults of ${hitKinds} kinds, ` +
      `${Object.values(report.typed).reduce((sum, n) => sum + n, 0)} lines typed, ` +
      `${Object.values(report.checks).reduce((sum, n) => sum + n, 0)} checks, ${report.violations.length} violations, ` +
      `at rest after ${report.secondsToConverge.toFixed(0)} s, ${report.seconds} s in all`,
  ].join('\n');
}

/** The line that makes this storm again, as it was typed. */
function lineOf({ seed }: Report): string {
  const more = Object.entries(values).flatMap(([name, value]) => {
    if (name === 'seed' || name === 'keep' || name === 'report' || value === false) return [];
    return [value].flat().map((each) => (each === true ? `--${name}` : `--${name} '${each}'`));
  });
  return ['npx tsx test/long/storm/storm.ts', `--seed ${seed}`, ...more].join(' ');
}
