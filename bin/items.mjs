/* `import { once } from 'onceper'`: the build where there is one, else the sources through tsx, for this import alone. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const root = path.dirname(import.meta.dirname);
const built = path.join(root, 'dist', 'src', 'store', 'items.js');

async function items() {
  if (existsSync(built)) return import(built);
  const { tsImport } = await import('tsx/esm/api');
  const source = pathToFileURL(path.join(root, 'src', 'store', 'items.ts')).href;
  return tsImport(source, { parentURL: import.meta.url, tsconfig: path.join(root, 'tsconfig.json') });
}

export const { asTx, once, onceMany, openDatabase, transaction } = await items();
