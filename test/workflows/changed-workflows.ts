import { sleep } from '@temporalio/workflow';
import * as workflows from '../../workflows/index.ts';

/** The product's workflows with a timer put in front: what a careless change does to runs that are under way. */
export async function tick(input: Parameters<typeof workflows.tick>[0]) {
  await sleep(1_000);
  return workflows.tick(input);
}

export async function period(input: Parameters<typeof workflows.period>[0]) {
  await sleep(1_000);
  return workflows.period(input);
}

export async function backfill(input: Parameters<typeof workflows.backfill>[0]) {
  await sleep(1_000);
  return workflows.backfill(input);
}
