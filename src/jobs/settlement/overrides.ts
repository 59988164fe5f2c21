import { OnceperError } from '../../kernel/error.ts';

/** Checks the `--set name=value` pairs of a settlement run: `empty=true` or `empty=false`. Throws `unknown_override`. */
export function checkOverrides(overrides: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(overrides)) {
    if (name === 'empty' && (value === 'true' || value === 'false')) continue;
    throw new OnceperError({
      code: 'unknown_override',
      message: `settlement has no override ${name}=${value}`,
      remedy: 'it has one: --set empty=true confirms a period without transactions and balances',
      at: name,
    });
  }
}
