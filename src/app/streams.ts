/** One of this process's two ways out. Nothing else writes to them, so that what a reader or a full disk does is known here. */
export interface OutStream {
  readonly write: (text: string) => void;
  /** Waits until everything has been taken; what the device refused it with, or null. */
  readonly refusal: () => Promise<Error | null>;
}

let opened: { readonly out: OutStream; readonly err: OutStream } | null = null;

/** Standard output and standard error of this process. */
export function standardStreams(): { readonly out: OutStream; readonly err: OutStream } {
  opened ??= { out: open(process.stdout), err: open(process.stderr) };
  return opened;
}

/**
 * A reader that has had enough (`| head`) is no fault: what comes after is for nobody, and the command goes on to its own exit
 * code. Any other refusal, such as a full disk, is kept for whoever asks.
 */
function open(stream: NodeJS.WriteStream): OutStream {
  let refused: Error | null = null;
  let last: Promise<void> = Promise.resolve();
  const keep = (error: NodeJS.ErrnoException | null | undefined) => {
    if (error && error.code !== 'EPIPE') refused ??= error;
  };
  // Each write is told too; an error that nobody listens to would end the process.
  stream.on('error', keep);
  return {
    write(text) {
      last = new Promise((taken) => {
        stream.write(text, (error) => {
          keep(error);
          taken();
        });
      });
    },
    refusal: () => last.then(() => refused),
  };
}
