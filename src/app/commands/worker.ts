import { type AddCommand, command } from '../command.ts';
import { EXIT } from '../exit-codes.ts';

/** `worker`: opens, claims, performs and closes, until it is asked to stop. */
export const addWorker: AddCommand = (program, act) => {
  command(program, 'worker', {
    summary: 'work on runs until SIGTERM, then finish what is in flight; any number may run',
    example: 'npx onceper worker',
  }).action(
    act(async (session) => {
      // Loaded here: the worker's native part takes half a second that no other command should wait for.
      const { runWorker } = await import('../worker.ts');
      await runWorker(session.config);
      session.answer({ process: 'worker', stopped: true }, 'worker stopped');
      return EXIT.done;
    }),
  );
};
