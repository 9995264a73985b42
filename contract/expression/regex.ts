// The subset of regular expressions, over bytes: whatever is accepted here means the same in every engine and is matched
// in linear time. A pattern is printable ASCII; repetitions follow a character, an escape or a class, never a group.
import { ByteSet } from './byte-set.ts';
import { refuse } from './errors.ts';
import { MAX_REGEX, MAX_REPEAT } from './limits.ts';
import { readClass } from './regex-class.ts';
import { readEscape } from './regex-escape.ts';

export type RegexNode =
  | { readonly kind: 'byte'; readonly set: ByteSet }
  /** `max` null: any number of times. */
  | {
      readonly kind: 'repeat';
      readonly set: ByteSet;
      readonly min: number;
      readonly max: number | null;
      readonly lazy: boolean;
    }
  | { readonly kind: 'start' | 'end' | 'boundary' | 'not_boundary' }
  /** Numbered from 1 by their opening parentheses. */
  | { readonly kind: 'group'; readonly index: number; readonly node: RegexNode }
  | { readonly kind: 'sequence'; readonly nodes: readonly RegexNode[] }
  | { readonly kind: 'alternatives'; readonly nodes: readonly RegexNode[] };

export interface Regex {
  readonly node: RegexNode;
  readonly groups: number;
}

const NEW_LINE = 0x0a;
const ANY = ByteSet.of(NEW_LINE).inverted();

/** Reads a pattern. Throws ExpressionFault with an index into the pattern and one of the codes `regex_…`. */
export function parseRegex(pattern: string): Regex {
  if (pattern.length > MAX_REGEX) refuse('regex_too_long', MAX_REGEX, { max: MAX_REGEX });
  for (let index = 0; index < pattern.length; index++) {
    const unit = pattern.charCodeAt(index);
    if (unit < 0x20 || unit > 0x7e) refuse('regex_ascii', index);
  }
  const reader = new RegexReader(pattern);
  const node = reader.alternatives();
  if (reader.index < pattern.length) refuse('regex_parenthesis', reader.index);
  return { node, groups: reader.groups };
}

class RegexReader {
  readonly pattern: string;
  index = 0;
  groups = 0;

  constructor(pattern: string) {
    this.pattern = pattern;
  }

  /** Up to the end or an unopened parenthesis. The pattern's length bounds how deep this calls itself. */
  alternatives(): RegexNode {
    const nodes = [this.sequence()];
    while (this.pattern[this.index] === '|') {
      this.index++;
      nodes.push(this.sequence());
    }
    return nodes.length === 1 ? nodes[0]! : { kind: 'alternatives', nodes };
  }

  sequence(): RegexNode {
    const nodes: RegexNode[] = [];
    for (;;) {
      const character = this.pattern[this.index];
      if (character === undefined || character === '|' || character === ')') return { kind: 'sequence', nodes };
      const node = this.atom(character);
      nodes.push(node.kind === 'byte' ? this.repeated(node) : node);
    }
  }

  atom(character: string): RegexNode {
    const at = this.index;
    switch (character) {
      case '(':
        return this.group();
      case '[': {
        const { set, end } = readClass(this.pattern, at);
        this.index = end;
        return { kind: 'byte', set };
      }
      case '\\':
        return this.escape();
      case '*':
      case '+':
      case '?':
        return refuse('regex_nothing_to_repeat', at);
      case '{':
        return refuse(boundsAt(this.pattern, at) ? 'regex_nothing_to_repeat' : 'regex_brackets', at);
      case ']':
      case '}':
        return refuse('regex_brackets', at);
    }
    this.index++;
    if (character === '^') return { kind: 'start' };
    if (character === '$') return { kind: 'end' };
    return { kind: 'byte', set: character === '.' ? ANY : ByteSet.of(character.charCodeAt(0)) };
  }

  group(): RegexNode {
    const at = this.index++;
    if (this.pattern[this.index] === '?') refuse('regex_group', at);
    const index = ++this.groups;
    const node = this.alternatives();
    if (this.pattern[this.index] !== ')') refuse('regex_parenthesis', at);
    this.index++;
    return { kind: 'group', index, node };
  }

  escape(): RegexNode {
    const letter = this.pattern[this.index + 1];
    if (letter === 'b' || letter === 'B') {
      this.index += 2;
      return { kind: letter === 'b' ? 'boundary' : 'not_boundary' };
    }
    const { set, end } = readEscape(this.pattern, this.index);
    this.index = end;
    return { kind: 'byte', set };
  }

  /** The character with the repetition that follows it, if one does. */
  repeated(node: RegexNode & { kind: 'byte' }): RegexNode {
    const bounds = this.bounds();
    if (!bounds) return node;
    const lazy = this.pattern[this.index] === '?';
    if (lazy) this.index++;
    return { kind: 'repeat', set: node.set, ...bounds, lazy };
  }

  bounds(): { min: number; max: number | null } | null {
    const at = this.index;
    const sign = this.pattern[at];
    if (sign === '{') {
      const bounds = boundsAt(this.pattern, at);
      if (!bounds) return refuse('regex_repetition', at);
      const { min, max, end } = bounds;
      if (min > MAX_REPEAT || (max !== null && (max > MAX_REPEAT || max < min))) refuse('regex_repetition', at);
      this.index = end;
      return { min, max };
    }
    if (sign !== '*' && sign !== '+' && sign !== '?') return null;
    this.index++;
    return { min: sign === '+' ? 1 : 0, max: sign === '?' ? 1 : null };
  }
}

const BOUNDS = /\{(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)?)?\}/y;

/** What `{n}`, `{n,}` or `{n,m}` at an index says; null when it is none of them. */
function boundsAt(pattern: string, at: number): { min: number; max: number | null; end: number } | null {
  BOUNDS.lastIndex = at;
  const match = BOUNDS.exec(pattern);
  if (!match) return null;
  const [text, min, comma, max] = match;
  const most = max === undefined ? null : Number(max);
  return { min: Number(min), max: comma === undefined ? Number(min) : most, end: at + text.length };
}
