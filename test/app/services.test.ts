import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, inject, test } from 'vitest';
import { loadConfig } from '../../src/app/config.ts';
import { temporalFault } from '../../src/app/fault.ts';
import { connectTemporal } from '../../src/app/services.ts';
import { emptyHome } from './command-line.ts';

test('a Temporal that took the connection and hangs is unreachable in time, and hangs no command', async () => {
  const [host = '', port = ''] = inject('temporalAddress').split(':');
  const sockets: Socket[] = [];
  let isMute = false;
  const network = createServer((client) => {
    const server = connect({ host, port: Number(port) });
    sockets.push(client, server);
    for (const socket of [client, server]) socket.on('error', () => undefined);
    client.on('data', (data) => void (isMute || server.write(data)));
    server.on('data', (data) => void (isMute || client.write(data)));
  });
  await new Promise<void>((resolve) => network.listen(0, '127.0.0.1', resolve));
  const address = `127.0.0.1:${(network.address() as AddressInfo).port}`;
  const config = loadConfig({ ONCEPER_HOME: emptyHome, TEMPORAL_ADDRESS: address });
  const client = await connectTemporal(config, 500);
  isMute = true;
  const described = client.workflow.getHandle('onceper-epoch').describe();
  await expect(
    described.catch((error: unknown) => Promise.reject(temporalFault(error, config) as Error)),
  ).rejects.toMatchObject({
    code: 'temporal_unreachable',
    at: address,
  });
  await client.connection.close();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => network.close(resolve));
});
