// Reads what `nft list table` prints, line by line: elements with their time, and the rules of the chain. Strict: text that an agent
// never wrote, e.g. a comment of an element, throws.
import { parseCidr } from '../bans/cidr.ts';

export interface ListedElement {
  set: string;
  /** Address, prefix or range as nft prints it. */
  text: string;
  /** Undefined: never ends. */
  remainingMs: number | undefined;
}

const ELEMENT = /\s*([0-9a-f.:/-]+)(?: timeout \w+)?(?: expires (\w+))?\s*(,|\}|$)/y;
const UNIT_MS: Record<string, number> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 };

export class TableListing {
  readonly rules: string[] = [];
  private readonly element: (element: ListedElement) => void;
  private block = '';
  private inElements = false;

  constructor(element: (element: ListedElement) => void) {
    this.element = element;
  }

  line(line: string): void {
    const text = line.trim();
    const opened = /^((?:set|chain) \w+) \{$/.exec(text);
    if (opened) this.block = opened[1]!;
    else if (this.block.startsWith('chain ') && text !== '}' && text !== '') this.rules.push(plainRule(text));
    else if (this.inElements) this.elements(text);
    else if (text.startsWith('elements = {')) this.elements(text.slice('elements = {'.length));
    else if (text === '}') this.block = '';
  }

  private elements(text: string): void {
    this.inElements = true;
    for (let at = 0; at < text.length; ) {
      ELEMENT.lastIndex = at;
      const found = ELEMENT.exec(text);
      if (!found) throw new Error(`unexpected text in ${this.block}: ${text.slice(at, at + 60)}`);
      at = ELEMENT.lastIndex;
      const remainingMs = found[2] === undefined ? undefined : durationMs(found[2]);
      this.element({ set: this.block.slice('set '.length), text: found[1]!, remainingMs });
      if (found[3] === '}') {
        this.inElements = false;
        return;
      }
    }
  }
}

/** A rule without its counts and without what only some versions of nft print. */
export function plainRule(text: string): string {
  return text
    .trim()
    .replace(/ packets \d+ bytes \d+/, '')
    .replace(' == @', ' @')
    .replace('priority raw', 'priority -300');
}

/** "1d2h3m4s5ms" in ms. */
function durationMs(text: string): number {
  let sum = 0;
  for (const [, count, unit] of text.matchAll(/(\d+)(ms|d|h|m|s)/g)) sum += Number(count) * UNIT_MS[unit!]!;
  return sum;
}

/** First and last address of an element of an interval set. */
export function rangeOf(text: string): { start: bigint; end: bigint } {
  const [first = '', last = first] = text.split('-');
  const [from, to] = [parseCidr(first), parseCidr(last)];
  if (!from || !to) throw new Error(`unexpected element: ${text.slice(0, 60)}`);
  const width = to.family === 4 ? 32 : 128;
  return { start: from.start, end: to.start + (1n << BigInt(width - to.bits)) - 1n };
}
