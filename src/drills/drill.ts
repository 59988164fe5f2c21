import type { Stage, StageOptions } from './stage.ts';

/** What a drill works with: stages of its own, and somebody who listens. */
export interface DrillTools {
  /** Sets a stage in a folder of the drill's own; it is stopped when the drill ends, however it ends. */
  readonly setStage: (changes?: Partial<StageOptions>) => Promise<Stage>;
  readonly folder: string;
  readonly options: StageOptions;
  readonly tell: (sentence: string) => void;
}

/** What was seen, beside what was expected, fact by fact. */
export interface Fact {
  readonly what: string;
  readonly expected: string;
  readonly seen: string;
}

/** A fault on purpose on throw-away servers. It passes when each fact was seen as expected. */
export interface Drill {
  readonly name: string;
  /** What is done, in one sentence. */
  readonly fault: string;
  /** What keeps the verdict good; test/long/drills.test.ts takes it away, and the drill must then fail. */
  readonly guard: string;
  run(tools: DrillTools): Promise<readonly Fact[]>;
}

export interface Verdict {
  readonly drill: string;
  readonly ok: boolean;
  readonly fault: string;
  readonly facts: readonly Fact[];
  readonly seconds: number;
}

/** One fact of the result. */
export function fact(what: string, expected: string | number, seen: string | number): Fact {
  return { what, expected: String(expected), seen: String(seen) };
}

/** True when every fact was seen as expected. A drill without facts proves nothing and does not pass. */
export function passes(facts: readonly Fact[]): boolean {
  return facts.length > 0 && facts.every((one) => one.expected === one.seen);
}
