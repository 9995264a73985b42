import { damaged } from './backup-error.ts';

/** Reads exact numbers of bytes from a stream of buffers; holds one buffer and what is asked for. */
export class ByteReader {
  readonly #source: AsyncIterator<Buffer>;
  #held: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Throws BackupError (damaged) when the stream ends before. */
  async read(bytes: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    let missing = bytes;
    while (missing > 0) {
      if (this.#held.length === 0 && !(await this.#fill())) throw damaged('it ends too early');
      const part = this.#held.subarray(0, missing);
      this.#held = this.#held.subarray(part.length);
      parts.push(part);
      missing -= part.length;
    }
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  }

  /** Bytes up to the next line feed, which is read too; at most `limit`. */
  async line(limit: number): Promise<Buffer> {
    let line = Buffer.alloc(0);
    for (;;) {
      if (this.#held.length === 0 && !(await this.#fill())) throw damaged('it ends within its header');
      const end = this.#held.indexOf(10);
      line = Buffer.concat([line, end < 0 ? this.#held : this.#held.subarray(0, end)]);
      if (line.length > limit) throw damaged('its header is too long');
      this.#held = this.#held.subarray(end < 0 ? this.#held.length : end + 1);
      if (end >= 0) return line;
    }
  }

  async atEnd(): Promise<boolean> {
    return this.#held.length === 0 && !(await this.#fill());
  }

  async #fill(): Promise<boolean> {
    for (;;) {
      const { done, value } = await this.#source.next();
      if (done) return false;
      if (value.length === 0) continue;
      this.#held = value;
      return true;
    }
  }
}
