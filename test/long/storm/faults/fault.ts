import type { Draw } from '../../../../src/jobs/settlement/sample/draw.ts';
import type { Field } from '../field.ts';

/** Faults of one lane fall one after the other; lanes go on beside each other. */
export type Lane =
  | 'worker-1'
  | 'worker-2'
  | 'relay-1'
  | 'relay-2'
  | 'webhooks'
  | 'gateway'
  | 'postgres'
  | 'sessions'
  | 'temporal'
  | 'weather'
  | 'ways'
  | 'people'
  | 'requests';

/** A kind of fault. */
export interface Kind {
  readonly name: string;
  readonly lanes: readonly Lane[];
  /** How often it comes, beside the others. */
  readonly weight: number;
  /** `early`: before the acts of people that a restore would lose; `late`: after it. */
  readonly when?: 'early' | 'late';
  /** True where a short storm has it too. */
  readonly isShort?: boolean;
  /** Makes it, and resolves when it is over; true where it hit something. */
  strike(field: Field, draw: Draw, lane: Lane): Promise<boolean>;
}
