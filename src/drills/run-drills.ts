import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeServers } from '../embedded/remove.ts';
import { type Drill, passes, type Verdict } from './drill.ts';
import { type Stage, type StageOptions, setStage } from './stage.ts';

/**
 * Runs a drill on servers in a new folder, ends everything it started, removes the folder, and says what was seen. What the
 * drill throws is thrown after the clean-up: a fault of the drill is not a verdict on the product.
 */
export async function runDrill(
  drill: Drill,
  options: Omit<StageOptions, 'folder'>,
  tell: (sentence: string) => void,
): Promise<Verdict> {
  const began = performance.now();
  const folder = mkdtempSync(join(tmpdir(), `onceper-drill-${drill.name}-`));
  const stages: Stage[] = [];
  const stageOptions = { ...options, folder: join(folder, 'stage') };
  try {
    const facts = await drill.run({
      folder,
      options: stageOptions,
      tell,
      async setStage(changes) {
        const stage = await setStage({ ...stageOptions, ...changes });
        stages.push(stage);
        return stage;
      },
    });
    const seconds = (performance.now() - began) / 1000;
    return { drill: drill.name, ok: passes(facts), fault: drill.fault, facts, seconds };
  } finally {
    for (const stage of stages.toReversed()) await stage.stop();
    for (const stage of stages) await removeServers(stage.folder);
    rmSync(folder, { recursive: true, force: true });
  }
}
