// Functions that replace what a pattern finds.
import { parseRegex } from '../../../contract/expression/regex.ts';
import { parseReplacement, parseWildcard, type Replacement } from '../../../contract/expression/wildcard.ts';
import { type Bytes, bytesOf } from './bytes.ts';
import { regexFind, type Spend } from './regex-match.ts';
import { compileRegex } from './regex-program.ts';
import { type Marked, marked, PLAIN } from './target.ts';
import { wildcardFind } from './wildcard-match.ts';

/** The first match replaced; the subject itself without one. Throws as regexFind does. */
export function regexReplace(subject: Bytes, pattern: string, replacement: string, spend?: Spend): Bytes {
  return regexReplaceMarked(marked(subject, PLAIN), pattern, replacement, spend).text;
}

/** As {@link regexReplace}, with the marks of what stays. */
export function regexReplaceMarked(subject: Marked, pattern: string, replacement: string, spend?: Spend): Marked {
  const regex = parseRegex(pattern);
  const slots = regexFind(compileRegex(regex), subject.text, spend);
  if (!slots) return subject;
  const put = parseReplacement(replacement, regex.groups);
  return onBoth(subject, (value, texts) => {
    const group = (index: number) => {
      const [start, end] = [slots[2 * index]!, slots[2 * index + 1]!];
      return start < 0 || end < 0 ? '' : value.slice(start, end);
    };
    return value.slice(0, slots[0]) + filled(put, texts, group) + value.slice(slots[1]);
  });
}

/** The replacement when all of the subject matches, else the subject itself. */
export function wildcardReplace(subject: Bytes, glob: string, replacement: string, caseSensitive: boolean): Bytes {
  return wildcardReplaceMarked(marked(subject, PLAIN), glob, replacement, caseSensitive).text;
}

/** As {@link wildcardReplace}, with the marks of what stays. */
export function wildcardReplaceMarked(
  subject: Marked,
  glob: string,
  replacement: string,
  caseSensitive: boolean,
): Marked {
  const stars = wildcardFind(parseWildcard(glob), subject.text, caseSensitive);
  if (!stars) return subject;
  const put = parseReplacement(replacement, stars.length);
  return onBoth(subject, (value, texts) =>
    filled(put, texts, (index) => {
      const [start = 0, end = 0] = stars[index - 1] ?? [];
      return value.slice(start, end);
    }),
  );
}

/** The same change of a text and its marks; `texts` is what a text of the replacement is there. */
function onBoth({ text, marks }: Marked, change: (value: string, texts: (text: Bytes) => string) => string): Marked {
  return { text: change(text, (put) => put), marks: change(marks, (put) => PLAIN.repeat(put.length)) };
}

function filled(replacement: Replacement, texts: (text: Bytes) => string, capture: (index: number) => string): string {
  return replacement.map((part) => (typeof part === 'number' ? capture(part) : texts(bytesOf(part)))).join('');
}
