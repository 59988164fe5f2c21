import { backfillNewKey } from './backfill-new-key.ts';
import { databaseRewound } from './database-rewound.ts';
import { doubleTick } from './double-tick.ts';
import type { Drill } from './drill.ts';
import { droppedAnswers } from './dropped-answers.ts';
import { effectWithoutRecord } from './effect-without-record.ts';
import { keyOutlived } from './key-outlived.ts';
import { killNine } from './kill-nine.ts';
import { lateResult } from './late-result.ts';
import { lockOnly } from './lock-only.ts';
import { lostCommitAck } from './lost-commit-ack.ts';
import { pausedOverMonthEnd } from './paused-over-month-end.ts';
import { receiverDown } from './receiver-down.ts';
import { recordWithoutEffect } from './record-without-effect.ts';
import { restoredForgotten, restoredLate } from './restored-late.ts';
import { temporalErased } from './temporal-erased.ts';
import { uniqueOnly } from './unique-only.ts';
import { uuidPerRetry } from './uuid-per-retry.ts';
import { zombie } from './zombie.ts';
import { zoneChanged } from './zone-changed.ts';

/** Every drill, in the order in which `onceper drill all` begins them: the longest first, so that none is waited for alone. */
export const DRILLS: readonly Drill[] = [
  killNine,
  droppedAnswers,
  temporalErased,
  restoredForgotten,
  restoredLate,
  databaseRewound,
  effectWithoutRecord,
  keyOutlived,
  receiverDown,
  backfillNewKey,
  zombie,
  lateResult,
  lostCommitAck,
  doubleTick,
  pausedOverMonthEnd,
  zoneChanged,
  lockOnly,
  uuidPerRetry,
  uniqueOnly,
  recordWithoutEffect,
];
