/** A database's address for people and logs: a password must not end in a terminal's history. */
export function withoutPassword(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  url.password = '';
  return url.href;
}

/** The line that a person types to look at a database whose password stands in a file. */
export function psqlCommand(databaseUrl: string, passwordFile: string): string {
  return `PGPASSFILE=${quoted(passwordFile)} psql ${withoutPassword(databaseUrl)}`;
}

function quoted(word: string): string {
  return /^[\w./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
