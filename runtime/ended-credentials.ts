// Access keys, keys of service accounts and sessions that end or change: every gateway hears of it with the commit, from
// the database itself, so that no crash and no Redis comes between the end and the notice of it.
import type { Tx } from './write.ts';

/** Channel of the database; payloads are `<word> <text>`. */
export const CREDENTIALS_CHANNEL = 'svc_credentials';

/** `ended`, with the hexadecimal SHA-256 of the secret. */
export const ENDED = 'ended';

/** Makes every gateway forget what it knows of these secrets, by their SHA-256. Part of the change that ends them. */
export async function endCredentials(tx: Tx, hashes: readonly Buffer[]): Promise<void> {
  if (hashes.length === 0) return;
  await tx.sql.raw(`select pg_notify(?, ? || ' ' || h) from unnest(?::text[]) as h`, [
    CREDENTIALS_CHANNEL,
    ENDED,
    hashes.map((hash) => hash.toString('hex')) as never,
  ]);
  tx.call.credentialsEnded = true;
}
