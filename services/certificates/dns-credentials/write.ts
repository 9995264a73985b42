// Writes of credentials for DNS. Their secrets leave this file sealed alone.
import { randomUUID } from 'node:crypto';
import { badField, fail } from '../../../contract/errors.ts';
import type { Input, Output } from '../../../contract/procedure.ts';
import type { dnsCredentials } from '../../../contract/resources/dns-credentials.ts';
import { recordAudit } from '../../../models/audit/audit-entry.ts';
import { forgetRecordsOf, recordsToRemove } from '../../../models/certificates/acme-dns-record.ts';
import {
  certificatesOfCredential,
  type DnsAccess,
  type DnsCredentialRow,
  dnsCredentialById,
  dnsSecretPlace,
  insertDnsCredential,
  lockDnsCredential,
  deleteDnsCredential as removeCredential,
  updateDnsCredential as saveCredential,
} from '../../../models/certificates/dns-credential.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../../models/db/updated-at.ts';
import { clustersOfAccess } from '../../../models/dns/binding.ts';
import type { Call } from '../../../runtime/call.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { write } from '../../../runtime/write.ts';
import { recordName } from '../../dns/adapters/names.ts';
import { accessOf, assertSecret } from './access.ts';

/** Named in a refusal. */
const SHOWN = 5;

/** Throws BAD_REQUEST. */
export async function createDnsCredential(
  runtime: Runtime,
  input: Input<typeof dnsCredentials.create>,
  call: Call,
): Promise<DnsCredentialRow> {
  const { provider, secret } = input;
  const zone = recordName(input.zone) ?? badField('/zone', 'dnsName');
  const settings = accessOf(provider, input);
  assertSecret(provider, secret);
  return write(runtime, call, { status: 201 }, async (tx) => {
    const id = randomUUID();
    const name = input.name.trim();
    const sealed = runtime.sealer.seal(Buffer.from(secret), dnsSecretPlace(id));
    await insertDnsCredential(tx.sql, { id, name, provider, zone, settings, secret: sealed }, tx.now);
    await recordAudit(tx, 'dns_credential.create', targetOf({ id, name }), { provider, zone, ...said(settings) });
    return (await dnsCredentialById(tx.sql, id))!;
  });
}

/** Throws DNS_CREDENTIAL_NOT_FOUND, UPDATED_AT_MISMATCH and BAD_REQUEST. */
export async function updateDnsCredential(
  runtime: Runtime,
  input: Input<typeof dnsCredentials.update>,
  call: Call,
): Promise<DnsCredentialRow> {
  const { id, secret, expectedUpdatedAt } = input;
  return write(runtime, call, {}, async (tx) => {
    const row = (await lockDnsCredential(tx.sql, id)) ?? fail('DNS_CREDENTIAL_NOT_FOUND');
    assertUpdatedAt(expectedUpdatedAt, row.updatedAt);
    const settings = accessOf(row.provider, input, row.settings);
    if (secret !== undefined) assertSecret(row.provider, secret);
    const sealed = secret === undefined ? row.secret : runtime.sealer.seal(Buffer.from(secret), dnsSecretPlace(id));
    const name = input.name.trim();
    await saveCredential(tx.sql, { id, name, settings, secret: sealed }, nextUpdatedAt(row.updatedAt, tx.now));
    const detail = { ...said(settings), secretChanged: secret !== undefined };
    await recordAudit(tx, 'dns_credential.update', targetOf({ id, name }), detail);
    return (await dnsCredentialById(tx.sql, id))!;
  });
}

/** Throws DNS_CREDENTIAL_NOT_FOUND, DNS_CREDENTIAL_IN_USE. */
export async function deleteDnsCredential(
  runtime: Runtime,
  { id }: Input<typeof dnsCredentials.delete>,
  call: Call,
): Promise<Output<typeof dnsCredentials.delete>> {
  return write(runtime, call, {}, async (tx) => {
    const row = (await lockDnsCredential(tx.sql, id)) ?? fail('DNS_CREDENTIAL_NOT_FOUND');
    const certificates = await certificatesOfCredential(tx.sql, id, SHOWN);
    const records = await recordsToRemove(tx.sql, id);
    const clusters = await clustersOfAccess(tx.sql, id, SHOWN);
    if (clusters.length > 0 || certificates.length > 0 || records > 0)
      fail('DNS_CREDENTIAL_IN_USE', { clusters, certificates, records });
    const recordsLeft = await forgetRecordsOf(tx.sql, id);
    await removeCredential(tx.sql, id);
    await recordAudit(tx, 'dns_credential.delete', targetOf(row), { zone: row.zone, recordsLeft });
    return {};
  });
}

/** Without secrets, as the API has it. */
function said({ fields, nameservers }: DnsAccess): Record<string, unknown> {
  return { ...fields, nameservers };
}

function targetOf({ id, name }: { id: string; name: string }): { type: string; id: string; name: string } {
  return { type: 'dns_credential', id, name };
}
