// Headers of a made-up request or response, as rules change them.
import { type Bytes, lowerAscii } from '../evaluate/bytes.ts';
import type { HeaderLine } from '../evaluate/request-values.ts';

/** Bytes that rules may put into one header, with what separates its lines. */
const MAX_GROWN = 32 * 1024;
/** ": " and the end of the line. */
const FIELD_EXTRA = 4;

/** Header lines, and the names of those that were changed. */
export class Headers {
  #lines: readonly HeaderLine[];
  readonly #changed = new Set<string>();
  #grown = 0;

  constructor(lines: readonly HeaderLine[]) {
    this.#lines = lines;
  }

  get lines(): readonly HeaderLine[] {
    return this.#lines;
  }

  /** Whether a line still has room; counts it if so, for good. */
  grow(name: string, value: Bytes): boolean {
    const grown = this.#grown + name.length + value.length + FIELD_EXTRA;
    if (grown > MAX_GROWN) return false;
    this.#grown = grown;
    return true;
  }

  /** `name` is lower case in all of these. */
  set(name: string, value: Bytes): void {
    this.remove(name);
    this.add(name, value);
  }

  add(name: string, value: Bytes): void {
    this.#changed.add(name);
    this.#lines = [...this.#lines, [name, value]];
  }

  remove(name: string): void {
    this.#changed.add(name);
    this.#lines = this.#lines.filter(([each]) => lowerAscii(each) !== name);
  }

  /** Those that were changed, by name, with the lines they have now. */
  changes(): { name: string; lines: Bytes[] }[] {
    return [...this.#changed].sort().map((name) => ({ name, lines: this.values(name) }));
  }

  values(name: string): Bytes[] {
    return this.#lines.filter(([each]) => lowerAscii(each) === name).map(([, value]) => value);
  }
}
