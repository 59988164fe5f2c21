import { type AddressInfo, createServer, type Socket } from 'node:net';

/**
 * A counterparty in a process of its own that answers every transfer at once, and remembers nothing. Prints its address. It
 * reads HTTP only as far as it must (a head, `content-length` bytes), since what it costs is taken from the relay's two cores.
 */
const HEAD_END = '\r\n\r\n';
const LENGTH = /\r\ncontent-length: (\d+)/i;
let made = 0;

function answer(socket: Socket, body: string): void {
  made += 1;
  const text = `{"id":"tr_${made}","status":"succeeded",${body.slice(1)}`;
  socket.write(
    `HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\nconnection: keep-alive\r\n\r\n${text}`,
    'latin1',
  );
}

const server = createServer({ noDelay: true }, (socket) => {
  let waiting = '';
  socket.setEncoding('latin1');
  socket.on('error', () => socket.destroy());
  socket.on('data', (part: string) => {
    waiting += part;
    for (;;) {
      const head = waiting.indexOf(HEAD_END);
      if (head < 0) return;
      const length = Number(LENGTH.exec(waiting.slice(0, head))?.[1]);
      const end = head + HEAD_END.length + length;
      if (waiting.length < end) return;
      answer(socket, waiting.slice(head + HEAD_END.length, end));
      waiting = waiting.slice(end);
    }
  });
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
