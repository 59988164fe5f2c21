import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

/**
 * Compiles the product of `root` below `folder`, and returns where its entry finds it. A storm starts a hundred processes, and
 * from sources each of them spends half of its start on the compiler.
 */
export async function buildProduct(root: string, folder: string): Promise<string> {
  const product = join(folder, 'product');
  const built = join(product, 'dist');
  mkdirSync(built, { recursive: true });
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  const options = ['--noCheck', '--noEmit', 'false', '--rootDir', root, '--outDir', built];
  await promisify(execFile)(process.execPath, [compiler, '--project', join(root, 'tsconfig.json'), ...options]);
  // A worker bundles the workflows by the name of their source.
  symlinkSync('index.js', join(built, 'workflows/index.ts'));
  cpSync(join(root, 'bin'), join(product, 'bin'), { recursive: true });
  cpSync(join(root, 'package.json'), join(product, 'package.json'));
  for (const name of ['node_modules', 'migrations', 'rules']) symlinkSync(join(root, name), join(product, name));
  return product;
}
