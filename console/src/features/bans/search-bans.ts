// For a typed address, or "ban" and an address: which bans concern it, and a ban of it.
import { bans } from '@contract/resources/bans.ts';
import { formatCidr, parseCidr } from '@contract/scalars/cidr.ts';
import type { SearchProvider } from '@/app/feature.ts';
import { call } from '@/shared/api/call.ts';
import { serverNow } from '@/shared/api/server-clock.ts';
import { formatAgo } from '@/shared/i18n/format.ts';
import { i18n, loadMessages } from '@/shared/i18n/i18n.ts';

/** "ban 203.0.113.9" asks for the ban itself; the address alone may be about anything. */
const VERB = /^(?:(ban|block|封禁|拉黑)\s*)?(.*)$/i;

export const searchBans: SearchProvider = async (text, signal) => {
  const [, verb = '', typed = ''] = VERB.exec(text.trim()) ?? [];
  const cidr = parseCidr(typed);
  if (!cidr) return [];
  const address = formatCidr(cidr);
  const [{ items }] = await Promise.all([
    call(bans.list, { address, pageSize: 6 }, { signal }),
    loadMessages(['bans']),
  ]);
  const { t } = i18n.global;
  const making = {
    key: `ban-new:${address}`,
    title: t('bans.search.ban', { address }),
    to: { path: '/bans', query: { new: '1', cidr: address } },
  };
  const found = items.map((ban) => ({
    key: `ban:${ban.id}`,
    title: ban.cidr,
    detail: t('bans.search.detail', {
      where: ban.siteName ?? t('bans.scope.platform'),
      reason: t(`bans.reason.${ban.reason}`),
      until: formatAgo(ban.expiresAt, serverNow()),
    }),
    to: { path: '/bans', query: { address: ban.cidr } },
  }));
  return verb === '' ? [...found, making] : [making, ...found];
};
