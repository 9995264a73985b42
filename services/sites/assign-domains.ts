import { fail } from '../../contract/errors.ts';
import { type Domain, formatDomain } from '../../contract/scalars/domain.ts';
import { replaceDomains } from '../../models/sites/site.ts';
import type { Tx } from '../../runtime/write.ts';

/** Gives the site its domains; throws DOMAIN_IN_USE with those another site has, after which nothing may commit. */
export async function assignDomains(tx: Tx, siteId: string, domains: readonly Domain[]): Promise<void> {
  const taken = await replaceDomains(tx.sql, siteId, domains);
  if (taken.length > 0) fail('DOMAIN_IN_USE', { domains: taken.map(formatDomain) });
}
