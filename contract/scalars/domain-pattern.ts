// Pattern domains: a subset of regular expressions that JavaScript and RE2 read alike, small enough to be judged by
// reading. Matched against the whole host, which is lower case: an upper-case letter could never match or would change
// a class's meaning, so there is none.
//
//   alternation = sequence *("|" sequence)     at most 16 combinations of alternatives in all
//   sequence    = *(atom [quantifier] | group | anchor)
//   atom        = char | "." | class | escape
//   quantifier  = ("*" | "+" | "?" | "{n}" | "{n,}" | "{n,m}") ["?"]     n <= m <= 1000; at most 2 that repeat
//   group       = "(" alternation ")"           never quantified
//   anchor      = "^" | "$" | "\b"

export const MAX_PATTERN_LENGTH = 256;
const MAX_REPEATING = 2;
const MAX_COMBINATIONS = 16;
const MAX_COUNT = 1000;

const ALLOWED = /^[!-~]+$/;
const REFUSED = /[A-Z"'`]|\\\\/;
const COUNT = /^\{(0|[1-9][0-9]{0,3})(?:(,)(0|[1-9][0-9]{0,3})?)?\}/;
const CLASS_ESCAPES = new Set(['d', 'w']);
// Without the comma: it stands only inside a count.
const PUNCTUATION = /^[!-+\-./:-@[-`{-~]$/;

class Refused extends Error {}

/** Whether the text (without `~`) is an allowed pattern. */
export function isDomainPattern(text: string): boolean {
  if (text.length > MAX_PATTERN_LENGTH || !ALLOWED.test(text) || REFUSED.test(text)) return false;
  try {
    new PatternReader(text).read();
    return true;
  } catch (error) {
    if (error instanceof Refused) return false;
    throw error;
  }
}

class PatternReader {
  readonly #text: string;
  #at = 0;
  #repeating = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): void {
    const combinations = this.#alternation();
    if (this.#at < this.#text.length || combinations > MAX_COMBINATIONS) throw new Refused();
  }

  /** Answers how many combinations of alternatives it has. */
  #alternation(): number {
    let combinations = this.#sequence();
    while (this.#peek() === '|') {
      this.#at++;
      combinations += this.#sequence();
    }
    return combinations;
  }

  #sequence(): number {
    let combinations = 1;
    for (let char = this.#peek(); char !== undefined && char !== '|' && char !== ')'; char = this.#peek()) {
      if (char === '(') combinations *= this.#group();
      else if (char === '^' || char === '$') this.#at++;
      else if (char === '\\' && this.#text[this.#at + 1] === 'b') this.#at += 2;
      else {
        this.#atom(char);
        this.#quantifier();
        continue;
      }
      if (/[*+?{]/.test(this.#peek() ?? '')) throw new Refused();
    }
    return combinations;
  }

  #group(): number {
    this.#at++;
    if (this.#peek() === '?') throw new Refused();
    const combinations = this.#alternation();
    if (this.#peek() !== ')') throw new Refused();
    this.#at++;
    return combinations;
  }

  #atom(char: string): void {
    if (char === '[') this.#class();
    else if (char === '\\') this.#escape();
    else if (/[*+?{}\],]/.test(char)) throw new Refused();
    else this.#at++;
  }

  /** Answers the character escaped, or null for a class escape. */
  #escape(): string | null {
    const char = this.#text[this.#at + 1];
    if (char === undefined) throw new Refused();
    this.#at += 2;
    if (CLASS_ESCAPES.has(char)) return null;
    if (!PUNCTUATION.test(char)) throw new Refused();
    return char;
  }

  #class(): void {
    this.#at++;
    if (this.#peek() === '^') this.#at++;
    const first = this.#at;
    while (this.#peek() !== ']') {
      const from = this.#member(first);
      if (this.#peek() !== '-' || this.#text[this.#at + 1] === ']') continue;
      this.#at++;
      const to = this.#member(-1);
      if (from === null || to === null || from > to) throw new Refused();
    }
    if (this.#at === first) throw new Refused();
    this.#at++;
  }

  /** One member of a class; a bare hyphen stands only first or last. */
  #member(first: number): string | null {
    const char = this.#peek();
    if (char === undefined || char === '[' || char === ',') throw new Refused();
    if (char === '\\') return this.#escape();
    if (char === '-' && this.#at !== first && this.#text[this.#at + 1] !== ']') throw new Refused();
    this.#at++;
    return char;
  }

  #quantifier(): void {
    const char = this.#peek();
    if (char === '*' || char === '+') {
      this.#at++;
      this.#repeating++;
    } else if (char === '?') {
      this.#at++;
    } else if (char === '{') {
      this.#count();
    } else {
      return;
    }
    if (this.#peek() === '?') this.#at++;
    if (/[*+?{]/.test(this.#peek() ?? '') || this.#repeating > MAX_REPEATING) throw new Refused();
  }

  #count(): void {
    const match = COUNT.exec(this.#text.slice(this.#at));
    if (!match) throw new Refused();
    const least = Number(match[1]);
    const most = match[2] === undefined ? least : match[3] === undefined ? Number.POSITIVE_INFINITY : Number(match[3]);
    if (least > MAX_COUNT || least > most || (most > MAX_COUNT && most !== Number.POSITIVE_INFINITY))
      throw new Refused();
    if (most > 1) this.#repeating++;
    this.#at += match[0].length;
  }

  #peek(): string | undefined {
    return this.#text[this.#at];
  }
}
