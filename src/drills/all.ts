import { databaseRewound } from './database-rewound.ts';
import type { Drill } from './drill.ts';
import { droppedAnswers } from './dropped-answers.ts';
import { killNine } from './kill-nine.ts';
import { temporalErased } from './temporal-erased.ts';

/** Every drill, in the order in which `onceper drill all` runs them. */
export const DRILLS: readonly Drill[] = [droppedAnswers, temporalErased, databaseRewound, killNine];
