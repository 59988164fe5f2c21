import { proxyActivities } from '@temporalio/workflow';
import type { ItemActivities } from './temporal.ts';

const { pay } = proxyActivities<ItemActivities>({ startToCloseTimeout: '1 minute' });

/** One item: one activity, whose result is the workflow's. */
export async function item(key: string): Promise<string> {
  return pay(key);
}
