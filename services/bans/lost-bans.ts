import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { LostBan, LostBanStatus, lostBans } from '../../contract/resources/lost-bans.ts';
import { formatCidr, parseCidr } from '../../contract/scalars/cidr.ts';
import { lostBanCount, lostBanPage, lostBanSums } from '../../models/bans/lost-ban.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** Bans that a restore has lost, that have not ended and that nobody has made again. */
export async function listLostBans(
  { pools }: Runtime,
  input: Input<typeof lostBans.list>,
): Promise<Output<typeof lostBans.list>> {
  const { limit, offset } = pageOf(input);
  const now = new Date();
  const [rows, total] = await Promise.all([lostBanPage(pools.api, now, limit, offset), lostBanCount(pools.api, now)]);
  const items = rows.map((row) => ({
    id: row.id,
    scope: row.site_id === null ? ('platform' as const) : ('site' as const),
    cidr: formatCidr(parseCidr(row.cidr)!),
    reason: row.reason as LostBan['reason'],
    source: row.source,
    siteId: row.site_id,
    siteName: row.site_name,
    createdAt: row.created_at.toISOString(),
    expiresAt: row.expires_at.toISOString(),
    nodes: row.nodes,
    reportedAt: row.reported_at.toISOString(),
  }));
  return { items, total };
}

export async function lostBanStatus({ pools }: Runtime): Promise<LostBanStatus> {
  const [listed, sums] = await Promise.all([lostBanCount(pools.api, new Date()), lostBanSums(pools.api)]);
  return { listed, ...sums };
}
