// Header lines as RFC 9110 reads them: lists, quoted strings, tokens.
import type { Bytes } from '../evaluate/bytes.ts';
import type { HeaderLine } from '../evaluate/request-values.ts';

/** The lines of a field, by its name in lower case; null where there is none. */
export function linesOf(headers: readonly HeaderLine[], name: string): Bytes[] | null {
  const lines = headers.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value);
  return lines.length > 0 ? lines : null;
}

export function trimmed(text: Bytes): Bytes {
  return text.replace(/^[ \t]+|[ \t]+$/g, '');
}

/** Members of a list that is split at commas outside of quotes (section 5.6.1), without the empty ones. */
export function membersOf(lines: readonly Bytes[]): Bytes[] {
  return lines.flatMap((line) => {
    const members: Bytes[] = [];
    let start = 0;
    let quoted = false;
    for (let at = 0; at <= line.length; at++) {
      const c = line[at];
      if (c === '"') quoted = !quoted;
      else if (quoted && c === '\\') at++;
      if (at >= line.length || (c === ',' && !quoted)) {
        members.push(trimmed(line.slice(start, at)));
        start = at + 1;
      }
    }
    return members.filter((member) => member !== '');
  });
}

/** The text of a quoted string; null where it has no end. */
export function unquoted(value: Bytes): Bytes | null {
  return /^"(?:[^"\\]|\\[\s\S])*"$/.test(value) ? value.slice(1, -1).replace(/\\([\s\S])/g, '$1') : null;
}

export function isToken(text: Bytes): boolean {
  return /^[A-Za-z0-9!#$%&'*+\-.^_`|~]+$/.test(text);
}
