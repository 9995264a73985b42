// Whether records of a domain let an authority vouch for it (RFC 8659), in this way and with this account (RFC 8657).
import type { CaaRecord } from 'node:dns';
import type { Resolver } from 'node:dns/promises';

/** Asks for records of the type. */
export type CaaResolver = Pick<Resolver, 'resolveCaa'>;

/** Who is to vouch, and how it is asked. */
export interface CaaAsked {
  /** What records call the authority. */
  authority: readonly string[];
  method: 'http-01' | 'dns-01';
  /** Addresses of the accounts that it knows us by. */
  accounts: readonly string[];
}

/** Set where an authority that does not know the property must not issue. */
const CRITICAL = 128;
const KNOWN = new Set(['issue', 'issuewild', 'issuemail', 'iodef', 'contactemail', 'contactphone']);

/**
 * Whether one of the authority's names may issue: the nearest name upwards with records decides. Servers that do not
 * say forbid nothing: the authority asks them itself.
 */
export async function caaAllows(name: string, asked: CaaAsked, resolver: CaaResolver): Promise<boolean> {
  const wildcard = name.startsWith('*.');
  const labels = name.replace(/^[*][.]/, '').split('.');
  // Side by side: servers that are slow cost their time once, not once a label.
  const answers = await Promise.all(
    labels.map((_, from) => resolver.resolveCaa(labels.slice(from).join('.')).catch(() => [])),
  );
  const records = answers.find((answer) => answer.length > 0);
  return records === undefined || recordsAllow(records.flatMap(propertiesOf), wildcard, asked);
}

/** Asks for each name once, whoever asks: names of a site share their parents. */
export function askingOnce(resolver: CaaResolver): CaaResolver {
  const asked = new Map<string, ReturnType<CaaResolver['resolveCaa']>>();
  return {
    resolveCaa(name) {
      const known = asked.get(name) ?? resolver.resolveCaa(name);
      asked.set(name, known);
      return known;
    },
  };
}

interface Property {
  tag: string;
  value: string;
  critical: boolean;
}

/** The resolver gives names of properties as they are, of either case, and says what type the record is. */
function propertiesOf({ critical, type: _type, ...rest }: CaaRecord & { type?: string }): Property[] {
  return Object.entries(rest).map(([tag, value]) => ({
    tag: tag.toLowerCase(),
    value: String(value),
    critical: (critical & CRITICAL) !== 0,
  }));
}

function recordsAllow(properties: readonly Property[], wildcard: boolean, asked: CaaAsked): boolean {
  if (properties.some(({ tag, critical }) => critical && !KNOWN.has(tag))) return false;
  const valuesOf = (wanted: string) => properties.filter(({ tag }) => tag === wanted).map(({ value }) => value);
  const [issue, wild] = [valuesOf('issue'), valuesOf('issuewild')];
  const decisive = wildcard && wild.length > 0 ? wild : issue;
  return decisive.length === 0 || decisive.some((value) => valueAllows(value, asked));
}

/** A value is the authority's name, then what else has to hold: `example.net; validationmethods=dns-01`. */
function valueAllows(value: string, { authority, method, accounts }: CaaAsked): boolean {
  const [issuer = '', ...parameters] = value.split(';').map((part) => part.trim());
  if (!authority.includes(issuer.toLowerCase())) return false;
  return parameters.every((parameter) => {
    const at = parameter.indexOf('=');
    const given = parameter.slice(at + 1).trim();
    const tag = at < 0 ? '' : parameter.slice(0, at).trim().toLowerCase();
    if (tag === 'accounturi') return accounts.includes(given);
    if (tag !== 'validationmethods') return true;
    return given.split(',').some((label) => label.trim().toLowerCase() === method);
  });
}
