import { Listr, PRESET_TIMER } from 'listr2';
import { faultLine, faultOf } from '../fault.ts';
import type { Session } from '../session.ts';
import { oneLine } from '../terminal.ts';
import type { DemoStep } from './demo.ts';

/**
 * Steps one after the other; a bar of them for people, lines where nobody looks on, nothing where JSON was asked for. Listr writes
 * to the terminal by itself, so all that it is told goes through the door first.
 */
export async function performSteps(
  session: Pick<Session, 'io' | 'wantsJson'>,
  steps: readonly DemoStep[],
): Promise<void> {
  const failures: unknown[] = [];
  const tasks = steps.map((step) => ({
    title: oneLine(step.title),
    task: async (_: unknown, task: { output: string }) => {
      try {
        await step.run((sentence) => {
          task.output = oneLine(sentence);
        });
      } catch (error) {
        failures.push(error);
        throw new Error(faultLine(faultOf(error)));
      }
    },
  }));
  const renderer = session.wantsJson ? 'silent' : session.io.isTerminal ? 'default' : 'simple';
  try {
    await new Listr(tasks, { renderer, rendererOptions: { timer: PRESET_TIMER } }).run();
  } catch (error) {
    throw failures.length === 0 ? error : failures[0];
  }
}
