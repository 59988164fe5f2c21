import type { SerializedError } from 'vitest';
import type { Reporter, TestModule } from 'vitest/node';

/**
 * Prints `N passed, N failed, N skipped`, the tests of all projects, as the last line of the run. It prints when the
 * process exits, after every other reporter and the teardown of the servers, so that a failure there is counted too: a
 * run that can't succeed never ends on `0 failed`.
 */
export class ClosingLine implements Reporter {
  #passed = 0;
  #failed = 0;
  #skipped = 0;

  onInit(): void {
    process.once('exit', (code) => {
      const failed = code === 0 ? this.#failed : Math.max(1, this.#failed);
      process.stdout.write(`${this.#passed} passed, ${failed} failed, ${this.#skipped} skipped\n`);
    });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    this.#passed = 0;
    this.#failed = unhandledErrors.length;
    this.#skipped = 0;
    for (const module of modules) this.#count(module);
  }

  #count(module: TestModule): void {
    let failed = 0;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state === 'passed') this.#passed += 1;
      else if (state === 'failed') failed += 1;
      else this.#skipped += 1;
    }
    // A file that failed to load, or in a hook, has no failed test.
    if (failed === 0 && module.state() === 'failed') failed = 1;
    this.#failed += failed;
  }
}
