import { down } from '../../embedded/down.ts';
import { type AddCommand, command } from '../command.ts';
import { EXIT } from '../exit-codes.ts';

const NAMES = { postgres: 'PostgreSQL', temporal: 'Temporal' } as const;

/** `down`: stops exactly what `up` started here. */
export const addDown: AddCommand = (program, act) => {
  command(program, 'down', {
    summary: 'stop the servers that `up` started for this project, and nothing else; data stay',
    example: 'npx onceper down',
  }).action(
    act(async (session) => {
      const stopped = await down({ projectDir: session.config.home });
      const servers = stopped.kind === 'stopped' ? stopped.servers : [];
      const names = servers.map((server) => NAMES[server]).join(' and ');
      const text = stopped.kind === 'stopped' ? `stopped ${names === '' ? 'a start' : names}` : 'nothing runs here';
      session.answer({ kind: stopped.kind, servers }, text);
      return EXIT.done;
    }),
  );
};
