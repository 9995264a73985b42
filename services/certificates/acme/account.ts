// Accounts are shared: one for each directory, external account and address.
import { randomUUID } from 'node:crypto';
import { AcmeAccount, accountSecretPlace, setExternalKey } from '../../../models/certificates/acme-account.ts';
import type { Sealer } from '../../../runtime/sealer.ts';
import type { Tx } from '../../../runtime/write.ts';
import { type ExternalAccount, newAccountKey } from './protocol/jws.ts';

interface Wanted {
  directoryUrl: string;
  email: string;
  external: ExternalAccount | null;
}

/** Id of the account, which is made where there is none; another key of an external account that was given replaces it. */
export async function ensureAccount(
  tx: Tx,
  sealer: Sealer,
  { directoryUrl, email, external }: Wanted,
): Promise<string> {
  const of = { directoryUrl, eabKid: external?.kid ?? '', email: email.toLowerCase() };
  const id = randomUUID();
  const sealed = (column: 'private_key' | 'eab_hmac_key', secret: Buffer, row: string) =>
    sealer.seal(secret, accountSecretPlace(column, row));
  await AcmeAccount.insertNew(tx.sql, {
    ...of,
    id,
    privateKey: sealed('private_key', newAccountKey(), id),
    eabHmacKey: external && sealed('eab_hmac_key', Buffer.from(external.hmacKey), id),
  });
  const account = (await AcmeAccount.lockedOf(tx.sql, of))!;
  if (account.id !== id && external && account.url === null) {
    const eabHmacKey = sealed('eab_hmac_key', Buffer.from(external.hmacKey), account.id);
    await setExternalKey(tx.sql, account.id, eabHmacKey);
  }
  return account.id;
}
