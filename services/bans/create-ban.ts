import { fail } from '../../contract/errors.ts';
import type { Input } from '../../contract/procedure.ts';
import type { bans } from '../../contract/resources/bans.ts';
import type { Call } from '../../mixins/call.ts';
import type { Runtime } from '../../mixins/runtime.ts';
import { type Tx, write } from '../../mixins/write.ts';
import { recordAudit } from '../../models/audit-entry.ts';
import { checkBan, creatorOf, insertManualBan, renewBan } from '../../models/ban.ts';
import { hasRoomForBan } from '../../models/ban-limit.ts';
import type { ListedBan } from '../../models/ban-list.ts';
import { assertUnprotected, type CheckedBan, checkBanInput } from './check-ban.ts';
import { type BanOutput, presentBan } from './present-ban.ts';

/** What all manual bans have in common. */
const MANUAL = { source: 'manual', nodeId: null, nodeName: null, trigger: null, distributed: true } as const;

/**
 * Bans an address for a time:
 *
 * | The target's manual ban | Next                                             | Audit      |
 * |-------------------------|--------------------------------------------------|------------|
 * | none, lifted, expired   | a new ban, if the limit allows                   | ban.create |
 * | active                  | the same ban with the given reason and expiry    | ban.update |
 *
 * Throws the errors the contract lists.
 */
export async function createBan(runtime: Runtime, input: Input<typeof bans.create>, call: Call): Promise<BanOutput> {
  const checked = checkBanInput(input);
  return write(runtime, call, { pool: 'bans' }, async (tx) => {
    const { text: cidr, siteId, reason } = checked;
    const found = await checkBan(tx.sql, siteId, cidr, tx.now);
    if (siteId !== null && !found.site) fail('SITE_NOT_FOUND');
    assertUnprotected(checked.cidr, found.protected);
    const end = { reason, expiresAt: new Date(tx.now.getTime() + checked.durationSeconds * 1000) };
    const siteName = found.site?.name ?? null;
    const clusterId = found.site?.clusterId ?? null;
    const present = (id: string, seq: string, rest: Pick<ListedBan, 'createdAt' | 'createdBy' | 'unappliedNodes'>) =>
      presentBan({ ...MANUAL, ...end, ...rest, id, seq, scope: input.scope, siteId, siteName, clusterId, cidr });
    if (found.before?.active) {
      const { id, ...rest } = found.before;
      await auditBan(tx, 'ban.update', id, checked, siteName, end.expiresAt);
      return present(id, await renewBan(tx, id, end), rest);
    }
    const limit = found.settings.maxTotal;
    if (!(await hasRoomForBan(tx.sql, { most: found.most, limit }, tx.now))) fail('BAN_PLATFORM_LIMIT', { limit });
    const id = found.newId;
    await auditBan(tx, 'ban.create', id, checked, siteName, end.expiresAt);
    const seq = await insertManualBan(tx, id, { siteId, clusterId, cidr }, end);
    return present(id, seq, { createdAt: tx.now, createdBy: creatorOf(tx), unappliedNodes: 0 });
  });
}

async function auditBan(
  tx: Tx,
  action: string,
  id: string,
  { text, siteId, reason }: CheckedBan,
  siteName: string | null,
  expiresAt: Date,
): Promise<void> {
  const metadata = { reason, siteId, siteName, expiresAt: expiresAt.toISOString() };
  await recordAudit(tx, action, { type: 'ban', id, name: text }, metadata);
}
