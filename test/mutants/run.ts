import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import Table from 'cli-table3';
import { freePort } from '../../src/embedded/ports.ts';
import { startPostgres } from '../../src/embedded/postgres.ts';
import { type Copy, copyCheckout } from './copy.ts';
import { MUTATIONS, type Mutation } from './mutations.ts';

/** The part of vitest's JSON report that is read here. */
interface Report {
  readonly numTotalTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly { readonly title: string; readonly status: string }[];
  }[];
}

interface Verdict {
  readonly name: string;
  readonly caught: boolean;
  readonly by: string;
  readonly seconds: number;
}

/**
 * Applies each mutation to a copy of the checkout and runs the tests that must fail then. They pass on the copy as it is
 * first, or their failing would mean nothing. A mutation counts as caught only by a failed test, not by a file that did not
 * load. Ends with exit code 1 when one survives. Arguments choose mutations by a part of their name.
 */
async function main(wanted: readonly string[]): Promise<number> {
  const chosen = MUTATIONS.filter(({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)));
  const home = mkdtempSync(join(tmpdir(), 'onceper-mutants-servers-'));
  chmodSync(home, 0o755);
  const copy = copyCheckout();
  const server = await startPostgres({ dir: join(home, 'postgres'), port: await freePort(), durable: false });
  try {
    const bench: Bench = { copy, databaseUrl: server.url, report: join(home, 'report.json') };
    const tests = [...new Set(chosen.flatMap((mutation) => mutation.tests))];
    const sound = await runTests(bench, tests, chosen.some(needsTemporal));
    const passed = sound.testResults.filter(({ assertionResults }) => assertionResults.some(isPassed)).length;
    // A file whose set-up fails has no failed test, and would let every mutation live.
    if (passed < tests.length || sound.numFailedTests > 0) {
      print(`the tests fail without any mutation: ${failures(copy, sound).join('; ') || 'a file ran no test'}`);
      return 1;
    }
    const verdicts: Verdict[] = [];
    for (const mutation of chosen) {
      const verdict = await tryMutation(bench, mutation);
      verdicts.push(verdict);
      process.stderr.write(`${verdict.caught ? 'caught' : 'SURVIVED'}: ${verdict.name} (${verdict.seconds} s)\n`);
    }
    return summary(verdicts);
  } finally {
    await server.stop();
    copy.remove();
    rmSync(home, { recursive: true, force: true });
  }
}

interface Bench {
  readonly copy: Copy;
  readonly databaseUrl: string;
  readonly report: string;
}

async function tryMutation(bench: Bench, mutation: Mutation): Promise<Verdict> {
  const began = performance.now();
  const undo = bench.copy.apply(mutation.edits);
  try {
    const report = await runTests(bench, mutation.tests, needsTemporal(mutation));
    const [first] = failures(bench.copy, report);
    const seconds = Math.round((performance.now() - began) / 1000);
    return { name: mutation.name, caught: first !== undefined, by: first ?? 'nothing', seconds };
  } finally {
    undo();
  }
}

/** Few sequences of the model, always the same ones, and none shrunk: what they catch they catch in seconds. */
const MODEL = { MODEL_SEQUENCES: '300', MODEL_SEED: '20260930', MODEL_SHRINK: 'off' };

const needsTemporal = (mutation: Mutation) => mutation.temporal === true;
const isPassed = ({ status }: { readonly status: string }) => status === 'passed';

/** Runs test files in the copy, on the server given to it, and with a Temporal of their own where one is needed. */
async function runTests(bench: Bench, files: readonly string[], withTemporal: boolean): Promise<Report> {
  rmSync(bench.report, { force: true });
  const vitest = join(bench.copy.folder, 'node_modules/vitest/vitest.mjs');
  const reporting = ['--reporter=json', `--outputFile=${bench.report}`];
  await ended(process.execPath, [vitest, 'run', '--project', 'servers', ...reporting, ...files], {
    cwd: bench.copy.folder,
    env: {
      ...process.env,
      ...MODEL,
      DATABASE_URL: bench.databaseUrl,
      TEMPORAL_ADDRESS: withTemporal ? '' : '127.0.0.1:1',
    },
  });
  return JSON.parse(readFileSync(bench.report, 'utf8')) as Report;
}

function ended(file: string, args: readonly string[], options: { cwd: string; env: NodeJS.ProcessEnv }): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { ...options, stdio: 'ignore' });
    child.once('error', reject);
    child.once('exit', () => resolve());
  });
}

function failures(copy: Copy, report: Report): string[] {
  return report.testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter((result) => result.status === 'failed')
      .map((result) => `${relative(copy.folder, name)}: ${result.title}`),
  );
}

function summary(verdicts: readonly Verdict[]): number {
  const style = { compact: true, head: [], border: [] };
  const table = new Table({ head: ['mutation', 'caught by', 's'], colWidths: [60, 92, 5], style });
  for (const { name, by, seconds } of verdicts) table.push([name, by, seconds]);
  const caught = verdicts.filter((verdict) => verdict.caught).length;
  print(`${table.toString()}\n${caught}/${verdicts.length}`);
  return caught === verdicts.length && verdicts.length > 0 ? 0 : 1;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

process.exitCode = await main(process.argv.slice(2));
