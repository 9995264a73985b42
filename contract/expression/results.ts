// What the result of a value expression has to be for its use, and what is saved in its place. Both may be bytes, with a
// character each, or text.

/** Where a value is put. A parameter of a query may have any bytes: it is percent-encoded. */
export type ValueUse = 'redirect' | 'rewrite' | 'header' | 'query';

/** Bytes of a header's value; more are not sent. */
export const MAX_HEADER_VALUE_BYTES = 4096;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u001f\u007f]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const NOT_IN_TARGET = /[\u0000-\u0020\u007f\\]/;
/** A host, in brackets when it is an IPv6 address, and a port; no credentials. */
const AUTHORITY = /^(\[[0-9a-fA-F:.]+\]|[^[\]@:]+)(:[0-9]{1,5})?$/;

/** Whether the result can be used there: else a header is left as it is, and any other rule fails. */
export function isUsable(use: ValueUse, result: string): boolean {
  switch (use) {
    case 'redirect':
      return !NOT_IN_TARGET.test(result) && (isPath(result) || isUrl(result));
    case 'rewrite':
      return isPath(result) && !CONTROL.test(result) && !result.includes('\\');
    case 'header':
      return result.length <= MAX_HEADER_VALUE_BYTES && !CONTROL.test(result);
    case 'query':
      return true;
  }
}

/**
 * Whether a target can stand in a rule as it is. That of a rewrite is a path: what is computed from a decoded one may
 * have "?" and "#", which are percent-encoded, and who writes them there means a query.
 */
export function isFixedTarget(kind: 'redirect' | 'rewrite', target: string): boolean {
  return isUsable(kind, target) && !(kind === 'rewrite' && /[?#]/.test(target));
}

/** Two slashes would be the start of a host. */
function isPath(text: string): boolean {
  return text.startsWith('/') && text[1] !== '/';
}

function isUrl(text: string): boolean {
  const scheme = /^https?:\/\//i.exec(text);
  if (!scheme) return false;
  const [authority = ''] = text.slice(scheme[0].length).split(/[/?#]/, 1);
  return AUTHORITY.test(authority);
}
