import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A counterparty in a process of its own that answers every transfer at once, and remembers nothing. Prints its address. */
let made = 0;
const server = createServer({ keepAlive: true, noDelay: true }, (request, response) => {
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (part: string) => (body += part));
  request.on('end', () => {
    made += 1;
    const answer = `{"id":"tr_${made}","status":"succeeded",${body.slice(1)}`;
    response.writeHead(201, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) });
    response.end(answer);
  });
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
