// Functions that replace what a pattern finds.
import { parseRegex } from '../../../contract/expression/regex.ts';
import { parseReplacement, parseWildcard, type Replacement } from '../../../contract/expression/wildcard.ts';
import { type Bytes, bytesOf } from './bytes.ts';
import { regexFind, type Spend } from './regex-match.ts';
import { compileRegex } from './regex-program.ts';
import { wildcardFind } from './wildcard-match.ts';

/** The first match replaced; the subject itself without one. Throws as regexFind does. */
export function regexReplace(subject: Bytes, pattern: string, replacement: string, spend?: Spend): Bytes {
  const regex = parseRegex(pattern);
  const slots = regexFind(compileRegex(regex), subject, spend);
  if (!slots) return subject;
  const group = (index: number) => {
    const [start, end] = [slots[2 * index]!, slots[2 * index + 1]!];
    return start < 0 || end < 0 ? '' : subject.slice(start, end);
  };
  const put = filled(parseReplacement(replacement, regex.groups), group);
  return subject.slice(0, slots[0]) + put + subject.slice(slots[1]);
}

/** The replacement when all of the subject matches, else the subject itself. */
export function wildcardReplace(subject: Bytes, glob: string, replacement: string, caseSensitive: boolean): Bytes {
  const pattern = parseWildcard(glob);
  const stars = wildcardFind(pattern, subject, caseSensitive);
  return stars ? filled(parseReplacement(replacement, stars.length), (index) => stars[index - 1] ?? '') : subject;
}

function filled(replacement: Replacement, capture: (index: number) => Bytes): Bytes {
  return replacement.map((part) => (typeof part === 'number' ? capture(part) : bytesOf(part))).join('');
}
