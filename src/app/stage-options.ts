import type { StageOptions } from '../drills/stage.ts';
import { cacheFolder } from '../embedded/temporal-cli.ts';
import { type Config, ownEnvironment } from './config.ts';

/** What the configuration says of a stage; variables that name servers are honoured. Its folder is the caller's choice. */
export function stageOptions(
  config: Config,
  actor: string,
  onProgress: (sentence: string) => void,
): Omit<StageOptions, 'folder'> {
  return {
    databaseUrl: config.given.databaseUrl,
    temporalAddress: config.given.temporalAddress,
    temporalCli: {
      explicit: config.temporalCli.fromVariable,
      path: config.temporalCli.path,
      cacheDir: cacheFolder(config.temporalCli.xdgCacheHome),
    },
    environment: ownEnvironment(),
    taskQueue: config.taskQueue,
    actor,
    onProgress,
  };
}
