import pg from 'pg';
import { close, mustClaim, openRunOf, performOne, servicesFor, testPool } from '../support/ledger.ts';
import { createTinyJob } from '../support/tiny-job.ts';

/** When this process dies: before the statement is sent, while it is under way, or when its answer is there. */
export type Moment = 'before' | 'during' | 'after';

export interface KillInput {
  readonly databaseUrl: string;
  readonly startId: string;
  readonly scheduledAt: string;
  readonly leaseMs: number;
  /** The statement by its number and text; null runs to the end and prints every statement. */
  readonly at: { readonly number: number; readonly text: string; readonly moment: Moment } | null;
}

/** A statement that the path executes, with the part of the path that it belongs to. */
export interface Statement {
  readonly path: string;
  readonly text: string;
}

const input = JSON.parse(process.argv[2] ?? '') as KillInput;
const statements: Statement[] = [];
let path = 'open';
const die = () => process.kill(process.pid, 'SIGKILL');
const never = new Promise<never>(() => undefined);

/** Every statement of every connection goes through here, those of the driver's pool too. */
type Query = (this: pg.Client, ...values: unknown[]) => unknown;
const real = Reflect.get(pg.Client.prototype, 'query') as unknown as Query;
const counted: Query = function counted(...values) {
  const [first] = values;
  const text = typeof first === 'string' ? first : String((first as { text?: unknown }).text);
  const told = text.replaceAll(/\s+/g, ' ').replaceAll(/tiny:\d{4}-\d\d-\d\d/g, 'KEY');
  const number = statements.push({ path, text: told.trim() }) - 1;
  const { at } = input;
  if (at === null || number !== at.number) return Reflect.apply(real, this, values);
  if (statements[number]?.text !== at.text) {
    process.stderr.write(`statement ${number} was ${at.text} and is ${statements[number]?.text ?? ''}\n`);
    process.exit(3);
  }
  if (at.moment === 'before') die();
  // A callback would go on with the path; whatever is asked, the answer ends here.
  const answer = Reflect.apply(
    real,
    this,
    values.filter((value) => typeof value !== 'function'),
  ) as Promise<unknown>;
  if (at.moment === 'during') setImmediate(die);
  else void answer.finally(die);
  return never;
};
Object.assign(pg.Client.prototype, { query: counted });

const db = testPool(input.databaseUrl, 2);
const services = servicesFor(db, [createTinyJob(2)]);
const { run } = await openRunOf(services, { startId: input.startId, scheduledAt: input.scheduledAt });
path = 'claim';
const grant = await mustClaim(services, { run });
for (const slice of grant.slices) {
  path = `slice ${slice}`;
  await performOne(services, grant, slice, input.leaseMs);
}
path = 'close';
await close(services, grant);
process.stdout.write(JSON.stringify(statements));
await db.close();
