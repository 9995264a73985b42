// Whether records of a domain let an authority vouch for it (RFC 8659).
import type { Resolver } from 'node:dns/promises';

/** Asks for records of the type. */
export type CaaResolver = Pick<Resolver, 'resolveCaa'>;

/**
 * Whether one of the authority's names may issue: the nearest name upwards with records decides. Servers that do not
 * say forbid nothing: the authority asks them itself.
 */
export async function caaAllows(name: string, authority: readonly string[], resolver: CaaResolver): Promise<boolean> {
  const wildcard = name.startsWith('*.');
  const labels = name.replace(/^[*][.]/, '').split('.');
  for (let from = 0; from < labels.length; from++) {
    const records = await resolver.resolveCaa(labels.slice(from).join('.')).catch(() => []);
    if (records.length === 0) continue;
    const issue = records.flatMap((record) => (record.issue === undefined ? [] : [record.issue]));
    const wild = records.flatMap((record) => (record.issuewild === undefined ? [] : [record.issuewild]));
    const decisive = wildcard && wild.length > 0 ? wild : issue;
    if (decisive.length === 0) return true;
    return decisive.some((value) => authority.includes(value.split(';')[0]!.trim().toLowerCase()));
  }
  return true;
}
