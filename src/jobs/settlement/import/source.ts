import { OnceperError } from '../../../kernel/error.ts';
import { birminghamCards } from './birmingham-cards.ts';
import { generic } from './generic.ts';
import type { Source } from './source-format.ts';

const sources: readonly Source[] = [generic, birminghamCards];

/** The declared format of a source; throws OnceperError `unknown_source`. */
export function sourceNamed(name: string): Source {
  const source = sources.find((candidate) => candidate.name === name);
  if (source !== undefined) return source;
  throw new OnceperError({
    code: 'unknown_source',
    message: `no source is called ${name}`,
    remedy: `name one of: ${sources.map((known) => known.name).join(', ')}`,
    at: name,
  });
}
