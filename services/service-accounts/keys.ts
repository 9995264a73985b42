import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { MAX_LIVE_KEYS, type serviceAccounts } from '../../contract/resources/service-accounts.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { ServiceAccount, ServiceAccountKey } from '../../models/auth/service-account.ts';
import { newSecret } from '../../runtime/api-keys.ts';
import type { Call } from '../../runtime/call.ts';
import { endCredentials } from '../../runtime/ended-credentials.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';
import { type KeyOutput, presentKey } from './present.ts';
import { targetOf } from './service-accounts.ts';

/** Creates a key; its secret is answered here and nowhere else. Throws the contract's errors. */
export async function createServiceAccountKey(
  runtime: Runtime,
  input: Input<typeof serviceAccounts.createKey>,
  call: Call,
): Promise<Output<typeof serviceAccounts.createKey>> {
  const { secret, prefix, secretHash } = newSecret('ews_');
  return write(runtime, call, { status: 201 }, async (tx) => {
    const account = (await ServiceAccount.locked(tx.sql, input.id)) ?? fail('SERVICE_ACCOUNT_NOT_FOUND');
    const live = await ServiceAccountKey.live(tx.sql, account.id);
    if (live.length >= MAX_LIVE_KEYS) fail('SERVICE_ACCOUNT_KEY_LIMIT', { limit: MAX_LIVE_KEYS });
    const key = await ServiceAccountKey.query(tx.sql)
      .insert({
        serviceAccountId: account.id,
        name: input.name ?? account.name,
        prefix,
        secretHash,
        createdAt: tx.now,
      })
      .returning('*');
    await recordAudit(tx, 'service_account.key_create', targetOf(account), { keyId: key.id, prefix, name: key.name });
    return { key: presentKey(key), secret };
  });
}

/** Revokes a key; revoking it again changes nothing. Throws the contract's errors. */
export async function revokeServiceAccountKey(
  runtime: Runtime,
  { id, keyId }: Input<typeof serviceAccounts.revokeKey>,
  call: Call,
): Promise<KeyOutput> {
  return write(runtime, call, {}, async (tx) => {
    const account = (await ServiceAccount.locked(tx.sql, id)) ?? fail('SERVICE_ACCOUNT_NOT_FOUND');
    const key = await ServiceAccountKey.query(tx.sql).findOne({ id: keyId, service_account_id: id });
    if (!key) fail('SERVICE_ACCOUNT_KEY_NOT_FOUND');
    if (key.revokedAt === null) {
      await ServiceAccountKey.query(tx.sql).patch({ revokedAt: tx.now }).where({ id: keyId });
      key.revokedAt = tx.now;
      await endCredentials(tx, [key.secretHash]);
      const { prefix, name } = key;
      await recordAudit(tx, 'service_account.key_revoke', targetOf(account), { keyId, prefix, name });
    }
    return presentKey(key);
  });
}
