/** A worker that polls a task queue: the deployed build, and the jobs that it knows. */
export interface AnnouncedWorker {
  readonly release: string;
  readonly jobs: readonly string[];
}

/** What a worker calls itself to Temporal, beside its process and machine, so that `doctor` can read which jobs it knows. */
export function workerIdentity(process: string, { release, jobs }: AnnouncedWorker): string {
  return `${process} release=${release.replaceAll(/\s/g, '_')} jobs=${jobs.join(',')}`;
}

/** What a poller's identity announces; null for one that is no worker of ours, or of a release that announces nothing. */
export function announcedIn(identity: string): AnnouncedWorker | null {
  const [, release, jobs] = / release=(\S*) jobs=([a-z0-9,-]*)$/.exec(identity) ?? [];
  if (release === undefined || jobs === undefined) return null;
  return { release, jobs: jobs.split(',').filter((job) => job !== '') };
}
