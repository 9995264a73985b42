// Classes of a regular expression: [abc], [^a-z], [\d_-].
import { ByteSet } from './byte-set.ts';
import { refuse } from './errors.ts';
import { readEscape } from './regex-escape.ts';

const POSIX = ':.=';

/** Reads the class at an opening bracket. Throws ExpressionFault with one of the codes `regex_class_…`, regex_escape. */
export function readClass(pattern: string, at: number): { set: ByteSet; end: number } {
  const negated = pattern[at + 1] === '^';
  const first = at + (negated ? 2 : 1);
  if (pattern[first] === ']') refuse('regex_class_empty', at);
  let set = ByteSet.of();
  let index = first;
  while (pattern[index] !== ']') {
    const low = member(pattern, at, index, first);
    index = low.end;
    if (pattern[index] !== '-' || pattern[index + 1] === ']' || pattern[index + 1] === undefined) {
      set = set.or(low.set);
      continue;
    }
    // A bare dash in front is itself, so the one after it would be neither first nor last.
    if (low.dash) refuse('regex_class_dash', index);
    const high = member(pattern, at, index + 1, first);
    if (high.dash) refuse('regex_class_dash', index + 1);
    if (low.byte === null || high.byte === null || high.byte < low.byte) refuse('regex_class_range', low.at);
    set = set.or(ByteSet.ranges([low.byte, high.byte]));
    index = high.end;
  }
  // Other engines take [:x:] for a POSIX class that stands outside of one.
  const opening = pattern[at + 1]!;
  if (POSIX.includes(opening) && index > at + 2 && pattern[index - 1] === opening) refuse('regex_class_posix', at);
  return { set: negated ? set.inverted() : set, end: index + 1 };
}

interface Member {
  readonly set: ByteSet;
  readonly byte: number | null;
  readonly dash: boolean;
  readonly at: number;
  readonly end: number;
}

function member(pattern: string, opening: number, at: number, first: number): Member {
  const character = pattern[at];
  if (character === undefined) return refuse('regex_class_unterminated', opening);
  if (character === '\\') return { ...readEscape(pattern, at), dash: false, at };
  if (character === '[') {
    refuse(POSIX.includes(pattern[at + 1] ?? ']') ? 'regex_class_posix' : 'regex_class_bracket', at);
  }
  const dash = character === '-';
  const next = pattern[at + 1];
  if (dash && at !== first && next !== ']' && next !== undefined) refuse('regex_class_dash', at);
  const byte = character.charCodeAt(0);
  return { set: ByteSet.of(byte), byte, dash, at, end: at + 1 };
}
