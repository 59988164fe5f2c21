import { type AddCommand, command } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { runRelayProcess } from '../relay.ts';

/** `relay`: delivers the effects of done actions, until it is asked to stop. */
export const addRelay: AddCommand = (program, act) => {
  command(program, 'relay', {
    summary: 'deliver effects to the gateway until SIGTERM, then finish what is in flight; any number may run',
    example: 'ONCEPER_GATEWAY_URL=http://127.0.0.1:8290 npx onceper relay',
  }).action(
    act(async (session) => {
      const counts = await runRelayProcess(session.config, session.registry);
      session.answer({ process: 'relay', stopped: true, counts }, 'relay stopped');
      return EXIT.done;
    }),
  );
};
