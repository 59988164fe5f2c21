import { parseKey } from '../../kernel/key.ts';
import { type Explanation, explainKey } from '../../ops/why.ts';
import { type AddCommand, command } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { linesOf } from '../terminal.ts';

/** `why KEY`: the story of a key, and what is safe to do next. */
export const addWhy: AddCommand = (program, act) => {
  command(program, 'why <key>', {
    summary: 'why a key is where it is: who ran it, each attempt and its end, who holds it until when, what to do',
    example: 'npx onceper why settlement:2026-09',
  }).action(
    act(async (session, key: string) => {
      parseKey(key);
      const explanation = await session.withDatabase((db) => explainKey(db, key));
      session.answer(explanation, render(session, explanation));
      return EXIT.done;
    }),
  );
};

function render({ colours }: Session, explanation: Explanation): string {
  const { headline, clocks, sections, next } = explanation;
  const parts = sections.map(({ title, lines }) => section(colours.bold(title), lines));
  const steps = next.flatMap(({ why, command: line }) => [`${why}:`, `  ${colours.cyan(line)}`]);
  if (steps.length > 0) parts.push(section(colours.bold('Safe to do next'), steps));
  return [linesOf([colours.bold(headline), colours.dim(clocks)]), ...parts].join('\n\n');
}

function section(title: string, lines: readonly string[]): string {
  return linesOf([title, ...lines.map((line) => `  ${line}`)]);
}
