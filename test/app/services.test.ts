import { expect, inject, test } from 'vitest';
import { loadConfig } from '../../src/app/config.ts';
import { temporalFault } from '../../src/app/fault.ts';
import { connectTemporal } from '../../src/app/services.ts';
import { startPlainProxy } from '../../src/drills/tcp-proxy.ts';
import { emptyHome } from './command-line.ts';

test('a Temporal that took the connection and hangs is unreachable in time, and hangs no command', async () => {
  const network = await startPlainProxy(inject('temporalAddress'));
  const config = loadConfig({ ONCEPER_HOME: emptyHome, TEMPORAL_ADDRESS: network.url });
  const client = await connectTemporal(config, 500);
  network.hush();
  const described = client.workflow.getHandle('onceper-epoch').describe();
  await expect(
    described.catch((error: unknown) => Promise.reject(temporalFault(error, config) as Error)),
  ).rejects.toMatchObject({
    code: 'temporal_unreachable',
    at: network.url,
  });
  await client.connection.close();
  await network.close();
});
