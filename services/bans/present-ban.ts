import type { Output } from '../../contract/procedure.ts';
import type { bans } from '../../contract/resources/bans.ts';
import { formatCidr, parseCidr } from '../../contract/scalars/cidr.ts';
import type { ListedBan } from '../../models/bans/ban-list.ts';

export type BanOutput = Output<typeof bans.create>;

export function presentBan(ban: ListedBan): BanOutput {
  const { id, scope, source, siteId, siteName, trigger, createdBy, seq, distributed, unappliedNodes } = ban;
  return {
    id,
    scope,
    // The database writes a few IPv6 addresses with an IPv4 tail; the canonical form does not.
    cidr: formatCidr(parseCidr(ban.cidr)!),
    reason: ban.reason as BanOutput['reason'],
    source,
    siteId,
    siteName,
    node: ban.nodeId !== null && ban.nodeName !== null ? { id: ban.nodeId, name: ban.nodeName } : null,
    trigger,
    createdBy,
    createdAt: ban.createdAt.toISOString(),
    expiresAt: ban.expiresAt.toISOString(),
    seq,
    distributed,
    unappliedNodes,
  };
}
