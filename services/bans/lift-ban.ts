import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { bans } from '../../contract/resources/bans.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { liftBan as lift, lockActiveBan } from '../../models/bans/ban.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

/** Lifts an active ban, manual or automatic. Throws BAN_NOT_FOUND. */
export async function liftBan(
  runtime: Runtime,
  input: Input<typeof bans.delete>,
  call: Call,
): Promise<Output<typeof bans.delete>> {
  return write(runtime, call, { pool: 'bans' }, async (tx) => {
    const ban = (await lockActiveBan(tx.sql, input.id, tx.now)) ?? fail('BAN_NOT_FOUND');
    const { reason, siteId, source } = ban;
    await recordAudit(tx, 'ban.delete', { type: 'ban', id: ban.id, name: ban.cidr }, { reason, siteId, source });
    await lift(tx, ban.id);
    return {};
  });
}
