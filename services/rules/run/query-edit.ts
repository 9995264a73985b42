// How redirects and rewrites change a query, in the five steps that the edge takes.
import type { Bytes } from '../evaluate/bytes.ts';
import { encodeComponent, encodeLocation } from '../evaluate/percent.ts';

export interface SetParameter {
  readonly name: string;
  /** Not encoded yet. */
  readonly value: Bytes;
}

export interface QueryChange {
  readonly set: readonly SetParameter[];
  readonly remove: readonly string[];
}

const cut = (text: Bytes, mark: string): [before: Bytes, after: Bytes] => {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
};

/** A query without the parameters that are removed or set, and with those that are set at its end, by their names. */
export function changedQuery(query: Bytes, { set, remove }: QueryChange): Bytes {
  const named = new Set([...remove, ...set.map(({ name }) => name)]);
  const kept =
    named.size === 0
      ? query
      : query
          .split('&')
          .filter((part) => !named.has(cut(part, '=')[0]))
          .join('&');
  const added = [...set]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, value }) => `${name}=${encodeComponent(value)}`);
  return [...(kept === '' ? [] : [kept]), ...added].join('&');
}

/**
 * Where a redirect leads: its target with the query that is appended to it, changed; a fragment stays last, and no
 * question mark stands alone.
 */
export function redirectTarget(target: Bytes, appended: Bytes, change: QueryChange): Bytes {
  const [location, fragment] = cut(target, '#');
  const [base, own] = cut(location, '?');
  const query = changedQuery([own, appended].filter((part) => part !== '').join('&'), change);
  return encodeLocation(base + (query === '' ? '' : `?${query}`) + (target.includes('#') ? `#${fragment}` : ''));
}
