import { randomUUID } from 'node:crypto';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { inject } from 'vitest';

/** A Temporal namespace of its own for one test file: workflow ids and schedules of other files don't meet it. */
export interface TestNamespace {
  readonly address: string;
  readonly namespace: string;
}

/**
 * Registers a namespace, usable at once; it goes with the server. No search attribute is registered in it: that is the
 * worker's duty. The first trigger of a namespace's first schedule takes a second or two.
 */
export async function createTestNamespace(): Promise<TestNamespace> {
  const address = inject('temporalAddress');
  const namespace = `test-${randomUUID()}`;
  const connection = await Connection.connect({ address });
  try {
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: msToTs('1 day'),
    });
  } finally {
    await connection.close();
  }
  return { address, namespace };
}
