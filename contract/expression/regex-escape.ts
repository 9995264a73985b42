// What a backslash and what follows it stand for, in and out of classes.
import { ByteSet } from './byte-set.ts';
import { refuse } from './errors.ts';

export const DIGITS = ByteSet.ranges([0x30, 0x39]);
export const WORD = ByteSet.ranges([0x30, 0x39], [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]);

const CLASSES: Readonly<Record<string, ByteSet>> = { d: DIGITS, D: DIGITS.inverted(), w: WORD, W: WORD.inverted() };
const CONTROLS: Readonly<Record<string, number>> = { t: 0x09, n: 0x0a, f: 0x0c, r: 0x0d };
const PUNCTUATION = /^[!-/:-@[-`{-~]$/;
const HEX = /^[0-7][0-9a-fA-F]$/;

export interface Escape {
  readonly set: ByteSet;
  /** The byte it stands for; null for one that stands for several. */
  readonly byte: number | null;
  /** Index after it. */
  readonly end: number;
}

/** Reads the escape at a backslash. Throws ExpressionFault regex_escape. */
export function readEscape(pattern: string, at: number): Escape {
  const letter = pattern[at + 1] ?? '';
  if (Object.hasOwn(CLASSES, letter)) return { set: CLASSES[letter]!, byte: null, end: at + 2 };
  if (Object.hasOwn(CONTROLS, letter)) return single(CONTROLS[letter]!, at + 2);
  if (PUNCTUATION.test(letter)) return single(letter.charCodeAt(0), at + 2);
  const hex = pattern.slice(at + 2, at + 4);
  if (letter === 'x' && HEX.test(hex)) return single(Number.parseInt(hex, 16), at + 4);
  return refuse('regex_escape', at);
}

function single(byte: number, end: number): Escape {
  return { set: ByteSet.of(byte), byte, end };
}
