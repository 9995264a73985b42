// Which domains of a site the names of its certificates cover. A suffix is covered by the wildcard of its first level,
// which is all that a certificate can name of it; a pattern names nothing that a certificate could.
import { type Domain, formatDomain } from './domain.ts';

/** Domains that none of the names cover, in their order. */
export function uncoveredDomains(domains: readonly Domain[], names: Iterable<string>): Domain[] {
  const known: ReadonlySet<string> = names instanceof Set ? names : new Set(names);
  return domains.filter((domain) => !isCovered(domain, known));
}

/**
 * Domains with names that no certificate can have: a suffix also means names below its first level, and a pattern names
 * nothing. The edge redirects only those of their names to HTTPS that the certificates of the site have.
 */
export function partlyCoveredDomains(domains: readonly Domain[]): Domain[] {
  return domains.filter(({ form }) => form === 'suffix' || form === 'pattern');
}

/** The name that a certificate has for a domain; null for a pattern. */
export function nameOfDomain(domain: Domain): string | null {
  if (domain.form === 'pattern') return null;
  return domain.form === 'suffix' ? `*.${domain.name}` : formatDomain(domain);
}

/**
 * The name that a CA can be asked for to cover a domain; null when there is none. CAs issue no name with an underscore
 * (CA/Browser Forum, Baseline Requirements 7.1.2.7.12), but a wildcard covers one in the first label.
 */
export function requestableName(domain: Domain): string | null {
  const name = nameOfDomain(domain);
  if (name === null || !name.includes('_')) return name;
  const parent = name.slice(name.indexOf('.') + 1);
  return parent.includes('_') || !parent.includes('.') ? null : `*.${parent}`;
}

function isCovered(domain: Domain, names: ReadonlySet<string>): boolean {
  const name = nameOfDomain(domain);
  if (name === null || names.has(name)) return true;
  return domain.form === 'exact' && names.has(name.replace(/^[^.]*/, '*'));
}
