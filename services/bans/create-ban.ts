import { fail } from '../../contract/errors.ts';
import type { Input } from '../../contract/procedure.ts';
import type { bans } from '../../contract/resources/bans.ts';
import type { Call } from '../../mixins/call.ts';
import type { Runtime } from '../../mixins/runtime.ts';
import { type Tx, write } from '../../mixins/write.ts';
import { recordAudit } from '../../models/audit-entry.ts';
import { type BanRow, insertManualBan, manualBanOf, renewBan } from '../../models/ban.ts';
import { hasRoomForBan } from '../../models/ban-limit.ts';
import { lockForBan } from '../../models/ban-locks.ts';
import { readBanSettings } from '../../models/ban-setting.ts';
import { assertUnprotected, type CheckedBan, checkBanInput } from './check-ban.ts';
import { type BanOutput, presentBan } from './present-ban.ts';

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
    const { site, newId } = await lockForBan(tx.sql, checked.siteId, checked.text);
    if (checked.siteId !== null && !site) fail('SITE_NOT_FOUND');
    const target = { siteId: checked.siteId, clusterId: site?.clusterId ?? null, cidr: checked.text };
    await assertUnprotected(tx.sql, checked.cidr, target);
    const end = { reason: checked.reason, expiresAt: new Date(tx.now.getTime() + checked.durationSeconds * 1000) };
    const before = await manualBanOf(tx.sql, target);
    if (before && before.expiresAt > tx.now) {
      await auditBan(tx, 'ban.update', before.id, checked, site?.name ?? null, end.expiresAt);
      return present(await renewBan(tx, before, end), site?.name ?? null, before.unappliedNodes);
    }
    const { maxTotal } = await readBanSettings(tx.sql);
    if (!(await hasRoomForBan(tx.sql, maxTotal, tx.now))) fail('BAN_PLATFORM_LIMIT', { limit: maxTotal });
    await auditBan(tx, 'ban.create', newId, checked, site?.name ?? null, end.expiresAt);
    return present(await insertManualBan(tx, newId, target, end), site?.name ?? null, 0);
  });
}

function present(ban: BanRow, siteName: string | null, unappliedNodes: number): BanOutput {
  return presentBan({ ...ban, siteName, nodeName: null, unappliedNodes });
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
