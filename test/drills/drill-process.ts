import { spawn } from 'node:child_process';
import path from 'node:path';
import { copyCheckout } from '../mutants/copy.ts';
import type { Edit } from '../mutants/mutations.ts';

/** What a drill's process ended with and saw. */
export interface DrillRun {
  /** 0 where the drill passed, 6 where it failed. */
  readonly code: number | null;
  readonly facts: readonly { readonly what: string; readonly expected: string; readonly seen: string }[];
  /** The facts that were not seen as expected. */
  readonly differing: readonly string[];
}

const ROOT = path.resolve(import.meta.dirname, '../..');

/** Runs `onceper drill NAME` as a person types it. */
export function runDrillProcess(name: string): Promise<DrillRun> {
  return drillIn(ROOT, name);
}

/** Runs it from a copy of the checkout in which these edits were made: the product without its guard. */
export async function runDrillWithout(name: string, edits: readonly Edit[]): Promise<DrillRun> {
  const copy = copyCheckout();
  try {
    copy.apply(edits);
    return await drillIn(copy.folder, name);
  } finally {
    copy.remove();
  }
}

async function drillIn(folder: string, name: string): Promise<DrillRun> {
  const file = path.join(folder, 'bin/onceper.mjs');
  const child = spawn(process.execPath, [file, 'drill', name, '--json'], { env: process.env });
  let [out, err] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (part: string) => (out += part));
  child.stderr.setEncoding('utf8').on('data', (part: string) => (err += part));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  if (!out.startsWith('{"drills"'))
    throw new Error(`drill ${name} gave no verdict and ended with ${code}: ${out}${err}`);
  const [verdict] = (JSON.parse(out) as { drills: Pick<DrillRun, 'facts'>[] }).drills;
  const facts = verdict?.facts ?? [];
  return { code, facts, differing: facts.filter(({ expected, seen }) => expected !== seen).map(({ what }) => what) };
}
