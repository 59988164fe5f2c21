import { OnceperError } from '../kernel/error.ts';

const REMEDIES: Readonly<Record<string, string>> = {
  ENOSPC: 'free some space on that disk',
  EDQUOT: 'free some space of your quota',
  EROFS: 'use a project folder on a file system that can be written',
  EACCES: 'run as the user who made that folder, or give it to this one',
  EPERM: 'run as the user who made that folder, or give it to this one',
};

const OTHERWISE = 'name a project folder that can be made and written';

/** A file system's refusal as an error that says where and what to do; any other thrown value unchanged. */
export function storageFault(thrown: unknown, folder: string): unknown {
  if (!(thrown instanceof Error) || !('code' in thrown) || typeof thrown.code !== 'string') return thrown;
  // Only the file system's own errors name a path.
  if (thrown instanceof OnceperError || !('path' in thrown || thrown.code in REMEDIES)) return thrown;
  return new OnceperError({
    code: 'storage_refused',
    message: `${folder} can't be used: ${thrown.message}`,
    remedy: REMEDIES[thrown.code] ?? OTHERWISE,
    at: folder,
    cause: thrown,
  });
}
