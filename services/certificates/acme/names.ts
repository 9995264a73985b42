// Names of certificates: which are of use to sites, and who owns them.
import { getDomain } from 'tldts';
import type { Domain } from '../../../contract/scalars/domain.ts';
import { domainOf } from '../../../contract/scalars/domain-of-host.ts';

/** Names of a certificate by which a site with the domains is visited. */
export function usedNames(names: readonly string[], domains: readonly Domain[]): string[] {
  return names.filter((name) =>
    name.startsWith('*.') ? isWildcardUsed(name.slice(2), domains) : domainOf(name, domains) !== null,
  );
}

/** Whether the domains have a host one label below the name. */
function isWildcardUsed(parent: string, domains: readonly Domain[]): boolean {
  return domains.some(({ form, name }) => {
    if (form === 'exact') return name.slice(name.indexOf('.') + 1) === parent;
    if (form === 'wildcard') return name === parent;
    if (form === 'suffix') return name === parent || parent.endsWith(`.${name}`);
    // Nobody can tell which hosts a pattern has: leaving a name out would take HTTPS from some of them.
    return true;
  });
}

/**
 * The registered domain of a name by the Public Suffix List, those of companies (github.io) included: authorities count
 * orders by it. A name that is a public suffix itself stands for itself.
 */
export function registeredDomain(name: string): string {
  const bare = name.replace(/^[*][.]/, '');
  return getDomain(bare, { allowPrivateDomains: true, validateHostname: false }) ?? bare;
}
