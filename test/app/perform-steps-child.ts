import { performSteps } from '../../src/app/demo/perform-steps.ts';

/** The steps of a demo whose words are somebody else's, for a test to read what reaches the terminal. */
const [words = ''] = process.argv.slice(2);
const io = { isTerminal: process.stdout.isTTY === true } as Parameters<typeof performSteps>[0]['io'];
const steps = [
  {
    title: `import ${words}`,
    run: (tell: (sentence: string) => void) => {
      tell(`said ${words}`);
      return Promise.resolve();
    },
  },
  { title: 'fail', run: () => Promise.reject(new Error(`failed ${words}`)) },
];
try {
  await performSteps({ io, wantsJson: false }, steps);
} catch (error) {
  process.exitCode = error instanceof Error && error.message === `failed ${words}` ? 7 : 1;
}
