import { type AddCommand, command } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { wholeNumber } from '../options.ts';
import { runWebhooksProcess } from '../webhooks.ts';

/** `webhooks`: receives what the counterparty tells, until it is asked to stop. */
export const addWebhooks: AddCommand = (program, act) => {
  command(program, 'webhooks', {
    summary: 'receive the counterparty’s signed webhooks at POST /webhooks until SIGTERM; any number may run',
    example: 'ONCEPER_WEBHOOK_SECRET=whsec_… npx onceper webhooks --port 8291',
  })
    .option('--port <n>', 'the port to listen on; 0 takes a free one', wholeNumber('--port', 0, 65_535), 8291)
    .option('--host <address>', 'the address to listen on', '127.0.0.1')
    .action(
      act(async (session, options: { readonly port: number; readonly host: string }) => {
        const onListening = (url: string) => session.answer({ process: 'webhooks', url }, `webhooks at ${url}`);
        await runWebhooksProcess(session.config, session.registry, { ...options, onListening });
        return EXIT.done;
      }),
    );
};
