import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../embedded/ports.ts';
import { removeServers } from '../embedded/remove.ts';
import { codeOf } from '../kernel/error.ts';
import { type Drill, type DrillTools, type Fact, fact, passes, type Verdict } from './drill.ts';
import { type Stage, type StageOptions, setStage } from './stage.ts';

/** Drills wait more than they work, so two share two cores; more would stretch the times that they count. */
const AT_ONCE = 2;

/** Runs drills, two at a time, in their order; `tell` hears which drill a sentence is about. Throws what runDrill throws. */
export async function runDrills(
  drills: readonly Drill[],
  options: Omit<StageOptions, 'folder'>,
  tell: (drill: Drill, sentence: string) => void,
): Promise<readonly Verdict[]> {
  const verdicts = new Map<Drill, Verdict>();
  const waiting = [...drills];
  const lane = async () => {
    for (let drill = waiting.shift(); drill !== undefined; drill = waiting.shift()) {
      const about = drill;
      tell(about, about.fault);
      verdicts.set(about, await runDrill(about, options, (sentence) => tell(about, sentence)));
    }
  };
  const lanes = await Promise.allSettled(Array.from({ length: AT_ONCE }, lane));
  for (const ended of lanes) if (ended.status === 'rejected') throw ended.reason;
  return drills.flatMap((drill) => verdicts.get(drill) ?? []);
}

/**
 * Runs a drill on servers in a new folder, ends everything it started, removes the folder, and says what was seen. A state that
 * is waited for in vain is a verdict like any other. What else the drill throws is thrown after the clean-up: a fault of the
 * drill is not a verdict on the product.
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
    const facts = await factsOrWait(drill, {
      folder,
      options: stageOptions,
      tell,
      async setStage(changes) {
        const stage = await setStage({ ...stageOptions, ports: await randomPorts(), ...changes });
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

/** Two drills that begin at once would both find the usual ports free. */
async function randomPorts(): Promise<NonNullable<StageOptions['ports']>> {
  return { postgres: await freePort(), temporal: await freePort(), ui: await freePort() };
}

async function factsOrWait(drill: Drill, tools: DrillTools): Promise<readonly Fact[]> {
  try {
    return await drill.run(tools);
  } catch (error) {
    if (codeOf(error) !== 'waited_in_vain' || !(error instanceof Error)) throw error;
    return [fact(error.message, 'in time', 'in vain')];
  }
}
