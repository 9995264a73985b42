// Patterns in which a star stands for any number of bytes, and replacements that name what was matched.
import { indexBeyondBytes, isControl } from './bytes.ts';
import { refuse } from './errors.ts';
import { MAX_CAPTURES, MAX_REPLACEMENT_BYTES, MAX_STARS, MAX_WILDCARD_BYTES } from './limits.ts';

/** The literal texts between the stars: one more than there are stars. */
export type Wildcard = readonly string[];

/**
 * Reads a pattern: `\*` and `\\` mean themselves. Throws ExpressionFault with an index into the pattern:
 * wildcard_too_long, wildcard_invalid, wildcard_escape, wildcard_too_many.
 */
export function parseWildcard(pattern: string): Wildcard {
  const parts = [''];
  const tooLong = indexBeyondBytes(pattern, MAX_WILDCARD_BYTES);
  if (tooLong >= 0) refuse('wildcard_too_long', tooLong, { max: MAX_WILDCARD_BYTES });
  for (let index = 0; index < pattern.length; index++) {
    const character = pattern[index]!;
    if (isControl(character)) refuse('wildcard_invalid', index);
    if (character === '*') {
      if (parts.length > MAX_STARS) refuse('wildcard_too_many', index, { max: MAX_STARS });
      parts.push('');
    } else if (character === '\\') {
      const escaped = pattern[index + 1];
      if (escaped !== '*' && escaped !== '\\') refuse('wildcard_escape', index);
      parts[parts.length - 1] += escaped;
      index++;
    } else {
      parts[parts.length - 1] += character;
    }
  }
  return parts;
}

/** Of a dollar sign and a digit in braces. */
const CAPTURE_LENGTH = 4;

/** Literal texts, and numbers of groups or stars. */
export type Replacement = readonly (string | number)[];

/**
 * Reads a replacement for a pattern with so many groups or stars; a dollar sign that names none means itself. Throws
 * ExpressionFault with an index into the text: replacement_invalid, replacement_capture.
 */
export function parseReplacement(text: string, captures: number): Replacement {
  const tooLong = indexBeyondBytes(text, MAX_REPLACEMENT_BYTES);
  if (tooLong >= 0) refuse('replacement_invalid', tooLong);
  const parts: (string | number)[] = [];
  let literal = '';
  for (let index = 0; index < text.length; ) {
    const number = captureAt(text, index);
    if (number === null) {
      if (isControl(text[index]!)) refuse('replacement_invalid', index);
      literal += text[index++];
      continue;
    }
    if (number > captures) refuse('replacement_capture', index);
    if (literal !== '') parts.push(literal);
    literal = '';
    parts.push(number);
    index += CAPTURE_LENGTH;
  }
  if (literal !== '') parts.push(literal);
  return parts;
}

function captureAt(text: string, index: number): number | null {
  if (text[index] !== '$' || text[index + 1] !== '{' || text[index + 3] !== '}') return null;
  const number = Number(text[index + 2]);
  return Number.isInteger(number) && number >= 1 && number <= MAX_CAPTURES ? number : null;
}
