import pg from 'pg';
import { CANONICAL, CONNECTIONS, FLOOR } from '../work.ts';

/** The business's own connections, as many as items are worked on at a time. */
export interface Business {
  /** The bare statement of the floor: does the item's work once, and writes nothing when it is done already. */
  work(key: string): Promise<void>;
  close(): Promise<void>;
}

/** Opens the pool that the handlers of a queue work on. */
export function openBusiness(databaseUrl: string): Business {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: CONNECTIONS, application_name: 'bench business' });
  return {
    async work(key) {
      await pool.query({ text: FLOOR, values: [key, CANONICAL], name: 'bench floor' });
    },
    close: () => pool.end(),
  };
}
