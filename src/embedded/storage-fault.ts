import { OnceperError } from '../kernel/error.ts';

const REMEDIES: Readonly<Record<string, string>> = {
  ENOSPC: 'free some space on that disk',
  EDQUOT: 'free some space of your quota',
  EROFS: 'use a project folder on a file system that can be written',
  EACCES: 'run as the user who made that folder, or give it to this one',
  EPERM: 'run as the user who made that folder, or give it to this one',
};

/** A file system's refusal as an error that says where and what to do; any other thrown value unchanged. */
export function storageFault(thrown: unknown, folder: string): unknown {
  if (!(thrown instanceof Error) || !('code' in thrown) || typeof thrown.code !== 'string') return thrown;
  const remedy = REMEDIES[thrown.code];
  if (thrown instanceof OnceperError || remedy === undefined) return thrown;
  return new OnceperError({
    code: 'storage_refused',
    message: `${folder} can't be used: ${thrown.message}`,
    remedy,
    at: folder,
    cause: thrown,
  });
}
