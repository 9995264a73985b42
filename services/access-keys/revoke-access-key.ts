import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { accessKeys } from '../../contract/resources/access-keys.ts';
import { forgetKeys } from '../../mixins/api-keys.ts';
import type { Call } from '../../mixins/call.ts';
import type { Runtime } from '../../mixins/runtime.ts';
import { write } from '../../mixins/write.ts';
import { AccessKey } from '../../models/access-key.ts';
import { recordAudit } from '../../models/audit-entry.ts';
import { presentAccessKey } from './present-access-key.ts';

/** Revokes a key; revoking it again changes nothing. Every gateway forgets it at once, or within 5 s without Redis. */
export async function revokeAccessKey(
  runtime: Runtime,
  { id }: Input<typeof accessKeys.revoke>,
  call: Call,
): Promise<Output<typeof accessKeys.revoke>> {
  const { key, output } = await write(runtime, call, {}, async (tx) => {
    const found = await AccessKey.query(tx.sql).findById(id).forUpdate();
    if (!found) fail('ACCESS_KEY_NOT_FOUND');
    if (found.revokedAt === null) {
      await found.$query(tx.sql).patch({ revokedAt: tx.now });
      found.revokedAt = tx.now;
      await recordAudit(tx, 'api_key.revoke', { type: 'api_key', id, name: found.name });
    }
    return { key: found, output: presentAccessKey(found) };
  });
  await forgetKeys(runtime, [key.secretHash]);
  return output;
}
