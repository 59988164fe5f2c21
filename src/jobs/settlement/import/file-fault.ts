/** Something in the file after which nothing more of it can be read: the file is refused at this line. */
export class FileFault extends Error {
  override readonly name = 'FileFault';
  readonly line: number;
  readonly reason: string;

  constructor(line: number, reason: string) {
    super(`line ${line}: ${reason}`);
    this.line = line;
    this.reason = reason;
  }
}
