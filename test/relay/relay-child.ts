import type { Gateway } from '../../src/gateway/port.ts';
import type { RelayOptions } from '../../src/relay/plan.ts';
import { relayOnce } from '../../src/relay/relay.ts';
import { openDatabase } from '../../src/store/database.ts';
import { testRegistry } from '../support/ledger-rows.ts';
import { gatewayTo, receiversAt } from './harness.ts';

/** Where the relay in this process stops for good (SIGKILL), or until it is told to go on (SIGSTOP). */
export type Point = 'taken' | 'stopped_when_taken' | 'resend' | 'answered' | 'told' | 'settling' | 'recorded' | 'never';

export interface ChildInput {
  readonly databaseUrl: string;
  readonly gatewayUrl: string;
  /** The receiver `accounting`, where the relay has one to tell. */
  readonly receiverUrl?: string;
  readonly timeoutMs: number;
  readonly point: Point;
  readonly options: RelayOptions;
}

/** One relayOnce in a process of its own: `tsx relay-child.ts JSON`. It reports how often it sent, if it gets that far. */
const input = JSON.parse(process.argv[2] ?? '') as ChildInput;
const die = () => process.kill(process.pid, 'SIGKILL');
const db = openDatabase({ url: input.databaseUrl, name: 'relay child', max: 2 });
const real = gatewayTo(input.gatewayUrl, { timeoutMs: input.timeoutMs });

const gateway: Gateway = {
  ...real,
  async send(number, body, signal) {
    if (input.point === 'resend') die();
    const answer = await real.send(number, body, signal);
    if (input.point === 'answered') die();
    return answer;
  },
};
const told = input.receiverUrl === undefined ? undefined : receiversAt({ accounting: input.receiverUrl });
const receivers = told && {
  ...told,
  async send(...message: Parameters<typeof told.send>) {
    const answer = await told.send(...message);
    if (input.point === 'told') die();
    return answer;
  },
};
const jobs = testRegistry(() => {
  if (input.point === 'settling') die();
});
const counts = await relayOnce(
  { db, jobs, gateway, ...(receivers === undefined ? {} : { receivers }) },
  {
    ...input.options,
    onEvent(event) {
      if (event.kind === 'taken' && input.point === 'taken') die();
      if (event.kind === 'taken' && input.point === 'stopped_when_taken') process.kill(process.pid, 'SIGSTOP');
      if (event.kind === 'recorded' && input.point === 'recorded') die();
    },
  },
);
process.stdout.write(`${JSON.stringify(counts)}\n`);
await Promise.all([real.close(), receivers?.close()]);
await db.close();
