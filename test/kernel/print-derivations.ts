import { derivations } from './derivations.ts';

process.stdout.write(derivations());
