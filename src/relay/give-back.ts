import { releaseTaken, type TakenEffect } from '../store/outbox-take.ts';
import type { Bell } from './bell.ts';
import { faultEvent } from './events.ts';
import type { RelayPlan, RelayServices } from './plan.ts';

/** Gives taken effects back that were not begun, so that they are due at once and not when their lease ends. */
export interface GiveBack {
  add(effects: readonly TakenEffect[]): void;
  isDone(): boolean;
}

/** One release at a time. Where the database refuses, the end of the lease does the same, later. */
export function createGiveBack(services: RelayServices, plan: RelayPlan, bell: Bell): GiveBack {
  const waiting: TakenEffect[] = [];
  let isRunning = false;

  async function releaseAll(): Promise<void> {
    for (let effects = waiting.splice(0); effects.length > 0; effects = waiting.splice(0)) {
      try {
        plan.emit({ kind: 'released', count: await releaseTaken(services.db, effects) });
      } catch (error) {
        plan.emit(faultEvent('release', error));
      }
    }
    isRunning = false;
    bell.ring();
  }

  return {
    add(effects) {
      waiting.push(...effects);
      if (isRunning || waiting.length === 0) return;
      isRunning = true;
      void releaseAll();
    },
    isDone: () => !isRunning,
  };
}
