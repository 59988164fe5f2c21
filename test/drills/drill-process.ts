import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** A text that stands once in a file of this checkout, and what stands there in the copy. */
export interface Edit {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

export interface DrillRun {
  readonly code: number | null;
  readonly facts: readonly { readonly what: string; readonly expected: string; readonly seen: string }[];
  /** The facts that were not seen as expected. */
  readonly differing: readonly string[];
  readonly seconds: number;
}

const root = path.resolve(import.meta.dirname, '../..');
const COPIED = ['bin', 'src', 'activities', 'workflows', 'migrations', 'rules', 'package.json', 'tsconfig.json'];

/** Runs `onceper drill NAME` from this checkout, or, with edits, from a copy of it in which they were made. */
export async function runDrillProcess(name: string, edits: readonly Edit[] = []): Promise<DrillRun> {
  if (edits.length === 0) return drillFrom(root, name);
  const copy = mkdtempSync(path.join(tmpdir(), `onceper-guard-off-${name}-`));
  try {
    for (const part of COPIED) cpSync(path.join(root, part), path.join(copy, part), { recursive: true });
    symlinkSync(path.join(root, 'node_modules'), path.join(copy, 'node_modules'));
    for (const edit of edits) apply(copy, edit);
    return await drillFrom(copy, name);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function apply(copy: string, { file, from, to }: Edit): void {
  const text = readFileSync(path.join(copy, file), 'utf8');
  if (text.split(from).length !== 2) throw new Error(`${file} does not hold once: ${from}`);
  writeFileSync(
    path.join(copy, file),
    text.replace(from, () => to),
  );
}

async function drillFrom(folder: string, name: string): Promise<DrillRun> {
  const { DATABASE_URL: _database, TEMPORAL_ADDRESS: _temporal, ...env } = process.env;
  const child = spawn(process.execPath, [path.join(folder, 'bin/onceper.mjs'), 'drill', name, '--json'], { env });
  let [out, err] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (part: string) => (out += part));
  child.stderr.setEncoding('utf8').on('data', (part: string) => (err += part));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  const verdict = verdictOf(out);
  if (verdict === undefined) throw new Error(`drill ${name} ended with ${code}: ${out}${err}`);
  const differing = verdict.facts.filter(({ expected, seen }) => expected !== seen).map(({ what }) => what);
  return { code, differing, ...verdict };
}

function verdictOf(out: string): Pick<DrillRun, 'facts' | 'seconds'> | undefined {
  if (!out.startsWith('{"drills"')) return undefined;
  return (JSON.parse(out) as { drills: Pick<DrillRun, 'facts' | 'seconds'>[] }).drills[0];
}
