import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { accessKeys } from '../../contract/resources/access-keys.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { AccessKey } from '../../models/auth/access-key.ts';
import type { Call } from '../../runtime/call.ts';
import { endCredentials } from '../../runtime/ended-credentials.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';
import { presentAccessKey } from './present-access-key.ts';

/** Revokes a key; revoking it again changes nothing. */
export async function revokeAccessKey(
  runtime: Runtime,
  { id }: Input<typeof accessKeys.revoke>,
  call: Call,
): Promise<Output<typeof accessKeys.revoke>> {
  return write(runtime, call, {}, async (tx) => {
    const found = await AccessKey.query(tx.sql).findById(id).forUpdate();
    if (!found) fail('ACCESS_KEY_NOT_FOUND');
    if (found.revokedAt === null) {
      await found.$query(tx.sql).patch({ revokedAt: tx.now });
      found.revokedAt = tx.now;
      await endCredentials(tx, [found.secretHash]);
      await recordAudit(tx, 'api_key.revoke', { type: 'api_key', id, name: found.name });
    }
    return presentAccessKey(found);
  });
}
