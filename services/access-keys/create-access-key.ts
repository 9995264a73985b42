import type { Input, Output } from '../../contract/procedure.ts';
import { accessKeys } from '../../contract/resources/access-keys.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { AccessKey } from '../../models/auth/access-key.ts';
import { newSecret } from '../../runtime/api-keys.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';
import { presentAccessKey } from './present-access-key.ts';

/** Creates a key of the signed-in user; its secret is answered here and nowhere else. */
export async function createAccessKey(
  runtime: Runtime,
  input: Input<typeof accessKeys.create>,
  call: Call,
): Promise<Output<typeof accessKeys.create>> {
  const { secret, prefix, secretHash } = newSecret('ewk_');
  return write(runtime, call, { status: accessKeys.create.status }, async (tx) => {
    const key = await AccessKey.query(tx.sql)
      .insert({
        userId: call.actor.id as string,
        name: input.name,
        scope: input.scope ?? 'readwrite',
        prefix,
        secretHash,
      })
      .returning('*');
    await recordAudit(tx, 'api_key.create', { type: 'api_key', id: key.id, name: key.name }, { scope: key.scope });
    return { key: presentAccessKey(key), secret };
  });
}
