import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';

/** What a start gives; null where that workflow's ID runs or may not be used again, which Temporal then refuses by itself. */
export async function unlessStarted<Handle>(start: () => Promise<Handle>): Promise<Handle | null> {
  try {
    return await start();
  } catch (error) {
    if (error instanceof WorkflowExecutionAlreadyStartedError) return null;
    throw error;
  }
}
