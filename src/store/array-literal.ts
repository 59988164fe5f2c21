type Plain = string | number | bigint | boolean | null;

/**
 * An array as PostgreSQL reads it from text, for a parameter of an array type; null stays null. The driver's own writer looks at
 * every element with two regular expressions, a tenth of a relay's time; most elements here hold nothing to escape.
 */
export function arrayLiteral(values: readonly Plain[]): string {
  let literal = '{';
  for (let i = 0; i < values.length; i += 1) {
    if (i > 0) literal += ',';
    literal += element(values[i] ?? null);
  }
  return `${literal}}`;
}

/** True of an array whose elements `arrayLiteral` writes; any other is left to the driver. */
export function isPlainArray(value: unknown): value is readonly Plain[] {
  return Array.isArray(value) && value.every((item) => item === null || PLAIN.has(typeof item));
}

const PLAIN = new Set(['string', 'number', 'bigint', 'boolean']);

function element(value: Plain): string {
  if (value === null) return 'NULL';
  if (typeof value !== 'string') return String(value);
  // Quoted, so that '' and 'NULL', blanks, commas and braces are what they are.
  return value.includes('"') || value.includes('\\') ? `"${value.replace(/["\\]/g, '\\$&')}"` : `"${value}"`;
}
