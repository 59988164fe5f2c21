import type { Gateway } from '../../src/gateway/port.ts';
import { relayOnce } from '../../src/relay/relay.ts';
import { openDatabase } from '../../src/store/database.ts';
import { deliverAll, FAST, gatewayTo } from '../relay/harness.ts';
import { testRegistry } from '../support/ledger-rows.ts';

/** Where this relay is killed, with all its numbers at that point; `nowhere` delivers until every effect is final. */
export type Point =
  | 'before_lease'
  | 'after_lease'
  | 'before_bytes'
  | 'after_bytes'
  | 'after_answer'
  | 'before_record'
  | 'after_record';

export interface MatrixInput {
  readonly databaseUrl: string;
  readonly gatewayUrl: string;
  readonly key: string;
  readonly point: Point | 'nowhere';
  /** How many numbers there are; the relay dies when the last of them has come to the point. */
  readonly numbers: number;
}

const input = JSON.parse(process.argv[2] ?? '') as MatrixInput;
const { point } = input;
const db = openDatabase({ url: input.databaseUrl, name: 'matrix child', max: 3 });
const real = gatewayTo(input.gatewayUrl, { timeoutMs: 4_000 });
const never = new Promise<never>(() => undefined);
const die = () => process.kill(process.pid, 'SIGKILL');

let arrived = 0;
let open: () => void = () => undefined;
const gate = new Promise<void>((resolve) => (open = resolve));
/** Counts one number in; `act` happens once, when the last one is there. */
const meet = (act: () => void) => {
  arrived += 1;
  if (arrived === input.numbers) act();
};

/** Answers wait for each other, so that one transaction records them all. */
const gateway: Gateway = {
  ...real,
  async send(number, body, signal) {
    if (point === 'nowhere') return real.send(number, body, signal);
    if (point === 'before_bytes') {
      meet(die);
      return never;
    }
    const answer = real.send(number, body, signal);
    if (point === 'after_bytes') {
      // The test kills this process as soon as the counterparty has every request.
      await answer;
      return never;
    }
    const answered = await answer;
    meet(point === 'after_answer' ? die : open);
    if (point === 'after_answer') return never;
    await gate;
    return answered;
  },
};

const jobs = testRegistry(() => {
  if (point === 'before_record') die();
});
let recorded = 0;
const options = { ...FAST, concurrency: input.numbers };
if (point === 'before_lease') die();
if (point === 'nowhere') await deliverAll({ db, jobs, gateway }, input.key, options);
else {
  await relayOnce(
    { db, jobs, gateway },
    {
      ...options,
      onEvent(event) {
        if (event.kind === 'taken' && point === 'after_lease') die();
        if (event.kind !== 'recorded' || point !== 'after_record') return;
        recorded += 1;
        if (recorded === input.numbers) die();
      },
    },
  );
}
await real.close();
await db.close();
