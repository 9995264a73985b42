// Reads the TAP output of ava line by line.

export interface TapResult {
  passed: number;
  failed: number;
  skipped: number;
}

const RESULT = /^(not ok|ok) \d+(?: - (.*?))?(?: # (SKIP|TODO)\b.*)?$/;

export class TapReader {
  readonly result: TapResult = { passed: 0, failed: 0, skipped: 0 };
  readonly #onFailure: (text: string) => void;
  #rest = '';
  #failure: string[] | undefined;

  /** `onFailure` gets each failed test with its diagnostics. */
  constructor(onFailure: (text: string) => void) {
    this.#onFailure = onFailure;
  }

  /** Whether the chunk ends a test. */
  write(chunk: string): boolean {
    const before = this.#results;
    const lines = (this.#rest + chunk).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#line(line);
    return this.#results > before;
  }

  get #results(): number {
    const { passed, failed, skipped } = this.result;
    return passed + failed + skipped;
  }

  end(): void {
    if (this.#rest !== '') this.#line(this.#rest);
    this.#rest = '';
    this.#flush();
  }

  #line(line: string): void {
    const match = RESULT.exec(line);
    if (!match) {
      if (this.#failure && /^(\s|$)/.test(line)) this.#failure.push(line);
      return;
    }
    this.#flush();
    const [, verdict, , directive] = match;
    // A skipped or planned test proves nothing, whatever the verdict before it.
    if (directive) this.result.skipped++;
    else if (verdict === 'ok') this.result.passed++;
    else {
      this.result.failed++;
      this.#failure = [line];
    }
  }

  #flush(): void {
    if (this.#failure) this.#onFailure(this.#failure.join('\n').trimEnd());
    this.#failure = undefined;
  }
}
