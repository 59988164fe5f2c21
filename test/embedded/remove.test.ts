import { existsSync } from 'node:fs';
import path from 'node:path';
import { expect, inject, test } from 'vitest';
import { removeServers } from '../../src/embedded/remove.ts';
import { up } from '../../src/embedded/servers.ts';
import { processesOf, startHere, testProject } from './project.ts';

test('servers that start or run are not removed from under their supervisor; afterwards nothing of them is left', async (context) => {
  const it = await testProject(context, { temporalAddress: inject('temporalAddress') });
  const starting = up(it);
  await expect(removeServers(it.projectDir)).rejects.toMatchObject({
    code: 'servers_running',
    at: String(process.pid),
  });
  const result = await starting;
  await expect(removeServers(it.projectDir)).rejects.toMatchObject({ code: 'servers_running' });
  if (result.kind === 'started') await result.stop();
  await removeServers(it.projectDir);
  expect(existsSync(path.join(it.projectDir, '.onceper'))).toBe(false);
  expect(processesOf(it.projectDir)).toEqual([]);
  await startHere(context, it);
});
