// What was shown for an authority goes when the order is over, however it ended.
import { endDnsRecords } from '../../../models/certificates/acme-dns-record.ts';
import { type AcmeOrder, tokensOfOthers } from '../../../models/certificates/acme-order.ts';
import { removeTokens } from '../../../models/certificates/acme-token.ts';
import type { Tx } from '../../../runtime/write.ts';

/** Last of a transaction: changes of the clusters' answers wait for its end. */
export async function endAnswers(tx: Tx, order: AcmeOrder): Promise<void> {
  await endDnsRecords(tx.sql, order.certificateId);
  const clusters = Object.keys(order.places);
  if (clusters.length === 0) return;
  const tokens = order.authorizations.flatMap(({ token }) => (token === '' ? [] : [token]));
  const others = await tokensOfOthers(tx.sql, order, tokens);
  const shown = order.authorizations.filter(({ token }) => token !== '' && !others.has(token));
  await removeTokens(
    tx,
    clusters,
    shown.map(({ name, token }) => ({ host: name, token })),
  );
}
