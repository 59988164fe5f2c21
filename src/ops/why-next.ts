import { isStalled } from '../jobs/expectation.ts';
import type { Action } from '../store/actions.ts';
import { backfillCommand, releaseCommand, resumeCommand, runCommand } from './commands.ts';
import { type KeyStory, stateOf } from './show.ts';
import { waitsForPause } from './why-effects.ts';

/** Something that is safe to do, and the command for it. */
export interface Step {
  readonly why: string;
  readonly command: string;
}

/** What is safe to press next, the most useful first. None of it can pay twice: the ledger decides every start. */
export function nextSteps(story: KeyStory): Step[] {
  const { action } = story;
  const steps = action === null ? waitingSteps(story) : actionSteps(story, action);
  return [...steps, ...effectSteps(story)];
}

function waitingSteps(story: KeyStory): Step[] {
  const { job, key, runs, previous } = story;
  const waiting = runs.findLast((run) => run.decision === stateOf(story));
  if (waiting === undefined) return [];
  if (waiting.decision === 'deferred') {
    const isForPrevious = waiting.code === 'predecessor_not_done' && previous !== null;
    return [
      isForPrevious
        ? { why: 'see why the period before it is not done', command: `npx onceper why ${previous}` }
        : { why: 'see which periods are under way', command: `npx onceper periods ${job}` },
      { why: 'a worker must be polling for it to ask again', command: 'npx onceper worker' },
    ];
  }
  return [
    {
      why: `let it go on, once you have read why it is held (${waiting.code})`,
      command: releaseCommand(waiting.startId),
    },
    { why: 'see what became of it', command: `npx onceper show ${key}` },
  ];
}

function actionSteps(story: KeyStory, action: Action): Step[] {
  const { key, job, period } = story;
  const rerun = runCommand(job, period);
  switch (action.state) {
    case 'admitted':
    case 'running':
      return isStalled(action)
        ? [
            { why: 'somebody must poll the task queue', command: 'npx onceper worker' },
            { why: 'start the owner again; it answers in_progress and the owner goes on', command: rerun },
            ...backfillStep(story, 'the same by Temporal'),
          ]
        : [
            { why: 'nothing needs to be done; look again', command: `npx onceper why ${key}` },
            { why: 'asking for it once more is harmless and answers in_progress', command: rerun },
          ];
    case 'failed':
      return [
        { why: 'the next attempt comes by itself, if a worker polls', command: 'npx onceper worker' },
        { why: 'start the owner again, should Temporal have lost it; it answers in_progress', command: rerun },
      ];
    case 'exhausted':
    case 'cancelled':
      return [
        {
          why: 'when the cause is mended, admit it again with a budget of its own; finished slices stay finished',
          command: releaseCommand(action.ownerRun),
        },
      ];
    case 'skipped':
      return [{ why: 'skipped is final; later periods are not held up by it', command: `npx onceper periods ${job}` }];
    case 'done':
    case 'compensating':
    case 'compensated':
      return [
        { why: 'running it again is harmless: it is answered with this result', command: rerun },
        ...backfillStep(story, 'the same by Temporal, a recorded duplicate'),
      ];
  }
}

function backfillStep({ job, nominal }: KeyStory, why: string): Step[] {
  return nominal === null ? [] : [{ why, command: backfillCommand(job, nominal, nominal) }];
}

function effectSteps(story: KeyStory): Step[] {
  const { key, effects, notices, action, pause } = story;
  const count = (...states: (keyof typeof effects)[]) =>
    states.reduce((sum, state) => sum + (effects[state] ?? 0) + (notices[state] ?? 0), 0);
  if (action === null || action.doneAt === null) return [];
  const steps: Step[] = [];
  if (pause !== null && waitsForPause(story)) {
    const why =
      'mend what the counterparty says of us; payouts go on by themselves minutes later, or at once by your word';
    steps.push({ why, command: resumeCommand(pause.name) });
  }
  if (count('pending', 'sending', 'unknown', 'pending_external') > 0) {
    steps.push({ why: 'effects that are not final need a relay; any number may run', command: 'npx onceper relay' });
  }
  if (count('needs_attention', 'dead', 'failed', 'returned') > 0) {
    steps.push({ why: 'see which effects did not end well', command: `npx onceper effects ${key}` });
  }
  return steps;
}
