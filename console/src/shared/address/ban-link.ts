// Where a ban of an address begins: the dialog, filled. IPv6 clients have a whole /64.

import type { RouteLocationRaw } from 'vue-router';
import { formatCidr, parseCidr } from '../../../../contract/scalars/cidr.ts';

const IPV6_CLIENT = 64;
const HOUR = '3600';

/** The network that one client has; null for what is no address. */
export function clientNetwork(address: string): string | null {
  const cidr = parseCidr(address);
  if (!cidr) return null;
  if (cidr.family !== 6 || cidr.prefix <= IPV6_CLIENT) return formatCidr(cidr);
  return formatCidr(parseCidr(`${address.split('/')[0]}/${IPV6_CLIENT}`) ?? cidr);
}

/** The filled dialog: for one site, or for all without one. */
export function banLink(address: string, siteId = ''): RouteLocationRaw | null {
  const cidr = clientNetwork(address);
  if (!cidr) return null;
  return { path: '/bans', query: { new: '1', cidr, duration: HOUR, ...(siteId ? { siteId } : {}) } };
}
