// Host names as they travel: lower case, punycode, without the trailing dot. Labels have letters, digits, hyphens and
// underscores: RFC 5891 restricts what is registered, not what is looked up.

export const MAX_HOST_NAME_LENGTH = 253;

const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
// What URL parsers read as (part of) an IPv4 address when it is the last label: 127.1, 0x7f.
const NUMERIC_LABEL = /^(?:[0-9]+|0x[0-9a-f]*)$/;
const ASCII_NAME = /^[a-z0-9._-]+$/;

/** Canonical form of a host name, Unicode as punycode (UTS #46, non-transitional); null when it is none. */
export function normaliseHostName(text: string): string | null {
  const lower = stripTrailingDot(text.toLowerCase());
  if (isAscii(lower) ? !ASCII_NAME.test(lower) : hasForbiddenAscii(lower)) return null;
  const ascii = isAscii(lower) && !lower.includes('xn--') ? lower : toPunycode(lower);
  if (ascii === null || ascii.length === 0 || ascii.length > MAX_HOST_NAME_LENGTH) return null;
  const labels = ascii.split('.');
  if (!labels.every((part) => LABEL.test(part)) || NUMERIC_LABEL.test(labels.at(-1)!)) return null;
  return ascii;
}

function stripTrailingDot(text: string): string {
  return text.endsWith('.') ? text.slice(0, -1) : text;
}

function isAscii(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the ASCII range is what is asked for
  return /^[\x00-\x7f]*$/.test(text);
}

/** URL parsers decode, cut or strip these; in a name they are mistakes. */
function hasForbiddenAscii(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the ASCII range is what is asked for
  return [...text].some((char) => /[\x00-\x7f]/.test(char) && !/[a-z0-9._-]/.test(char));
}

function toPunycode(text: string): string | null {
  const url = URL.parse(`http://${text}/`);
  return url && url.port === '' && url.pathname === '/' ? stripTrailingDot(url.hostname) : null;
}
