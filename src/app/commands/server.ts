import type { Command } from 'commander';
import { type Act, type AddCommand, command } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { usage } from '../fault.ts';
import { parseListen } from '../people-config.ts';
import { runServerProcess } from '../server/server-process.ts';

type Listen = NonNullable<ReturnType<typeof parseListen>>;

/** `server`: acts for people whom it has verified, with the program that it is given, until it is asked to stop. */
export function addServer(createProgram: (act: Act) => Command): AddCommand {
  return (program, act) => {
    command(program, 'server', {
      summary: 'act for people whose token it has verified, at /api/v1/, until SIGTERM; any number may run',
      example: 'ONCEPER_TOKEN_KEY=onceper.pem npx onceper server',
    })
      .option('--listen <address>', 'where to listen instead of ONCEPER_SERVER_LISTEN; port 0 takes a free one', listen)
      .action(
        act(async ({ config, io, answer }, options: { readonly listen?: Listen }) => {
          await runServerProcess(
            { config, io, createProgram },
            {
              listen: options.listen ?? config.server.listen,
              onListening: (url) => answer({ process: 'server', url }, `server at ${url}`),
            },
          );
          return EXIT.done;
        }),
      );
  };
}

function listen(text: string): Listen {
  const parsed = parseListen(text);
  if (parsed !== null) return parsed;
  throw usage(`'${text}' is no address and port`, `--listen ${text}`, 'for example --listen 127.0.0.1:8380');
}
