// Accesses to DNS providers. DNS credentials of certificates are the same rows.
import { randomUUID } from 'node:crypto';
import { badField, fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { DnsProvider, dnsProviders } from '../../contract/resources/dns.ts';
import { normaliseHostName } from '../../contract/scalars/host-name.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { forgetRecordsOf, recordsToRemove } from '../../models/certificates/acme-dns-record.ts';
import {
  certificatesOfCredential,
  type DnsCredentialRow,
  deleteDnsCredential,
  dnsCredentialById,
  dnsCredentialPage,
  dnsSecretPlace,
  insertDnsCredential,
  lockDnsCredential,
  updateDnsCredential,
} from '../../models/certificates/dns-credential.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { clustersOfAccess } from '../../models/dns/binding.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';
import type { AdapterKind } from './adapters/adapter.ts';
import { checkCredentials, splitCredentials } from './adapters/stored.ts';
import { kindOf } from './kind-of.ts';

/** Named in a refusal. */
const SHOWN = 5;

export async function listProviders(
  { pools }: Runtime,
  input: Input<typeof dnsProviders.list>,
): Promise<Output<typeof dnsProviders.list>> {
  const { limit, offset } = pageOf(input);
  const { rows, total } = await dnsCredentialPage(pools.api, input.search, limit, offset);
  return { items: rows.map(present), total };
}

/** Throws BAD_REQUEST. */
export async function createProvider(
  runtime: Runtime,
  input: Input<typeof dnsProviders.create>,
  call: Call,
): Promise<DnsProvider> {
  const { provider } = input;
  const kind = kindOf(provider);
  const zone = normaliseHostName(input.zone.trim()) ?? badField('/zone', 'dnsName');
  const credentials = checkCredentials(kind, input.credentials);
  return write(runtime, call, { status: 201 }, async (tx) => {
    const [id, name] = [randomUUID(), input.name.trim()];
    const stored = storedOf(runtime, kind, { id, nameservers: [] }, credentials);
    await insertDnsCredential(tx.sql, { id, name, provider, zone, ...stored }, tx.now);
    await recordAudit(tx, 'dns_provider.create', targetOf({ id, name }), { provider, zone });
    return present((await dnsCredentialById(tx.sql, id))!);
  });
}

/** Throws DNS_PROVIDER_NOT_FOUND, UPDATED_AT_MISMATCH and BAD_REQUEST. */
export async function updateProvider(
  runtime: Runtime,
  { id, credentials, expectedUpdatedAt, ...input }: Input<typeof dnsProviders.update>,
  call: Call,
): Promise<DnsProvider> {
  return write(runtime, call, {}, async (tx) => {
    const row = (await lockDnsCredential(tx.sql, id)) ?? fail('DNS_PROVIDER_NOT_FOUND');
    assertUpdatedAt(expectedUpdatedAt, row.updatedAt);
    const kind = kindOf(row.provider);
    const stored =
      credentials === undefined
        ? row
        : storedOf(runtime, kind, { id, nameservers: row.settings.nameservers }, checkCredentials(kind, credentials));
    const name = input.name.trim();
    const { settings, secret } = stored;
    await updateDnsCredential(tx.sql, { id, name, settings, secret }, nextUpdatedAt(row.updatedAt, tx.now));
    const said = { credentialsChanged: credentials !== undefined };
    await recordAudit(tx, 'dns_provider.update', targetOf({ id, name }), said);
    return present((await dnsCredentialById(tx.sql, id))!);
  });
}

/** Throws DNS_PROVIDER_NOT_FOUND and DNS_PROVIDER_IN_USE. */
export async function deleteProvider(
  runtime: Runtime,
  { id }: Input<typeof dnsProviders.delete>,
  call: Call,
): Promise<Record<string, never>> {
  return write(runtime, call, {}, async (tx) => {
    const row = (await lockDnsCredential(tx.sql, id)) ?? fail('DNS_PROVIDER_NOT_FOUND');
    const clusters = await clustersOfAccess(tx.sql, id, SHOWN);
    const certificates = await certificatesOfCredential(tx.sql, id, SHOWN);
    const records = await recordsToRemove(tx.sql, id);
    if (clusters.length + certificates.length + records > 0) {
      fail('DNS_PROVIDER_IN_USE', { clusters, certificates, records });
    }
    const recordsLeft = await forgetRecordsOf(tx.sql, id);
    await deleteDnsCredential(tx.sql, id);
    await recordAudit(tx, 'dns_provider.delete', targetOf(row), { zone: row.zone, recordsLeft });
    return {};
  });
}

/** Fields as they are, secrets sealed. */
function storedOf(
  { sealer }: Pick<Runtime, 'sealer'>,
  kind: AdapterKind,
  { id, nameservers }: { id: string; nameservers: string[] },
  credentials: Readonly<Record<string, string>>,
): Pick<DnsCredentialRow, 'settings' | 'secret'> {
  const { fields, secret } = splitCredentials(kind, credentials);
  return {
    settings: { fields: { ...fields }, nameservers },
    secret: sealer.seal(Buffer.from(secret), dnsSecretPlace(id)),
  };
}

function present(row: DnsCredentialRow): DnsProvider {
  const { id, name, provider, zone, certificateCount, clusterCount, lastError, createdAt, updatedAt } = row;
  return {
    id,
    name,
    provider,
    zone,
    settings: row.settings.fields,
    clusterCount,
    certificateCount,
    lastError,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}

function targetOf({ id, name }: { id: string; name: string }): { type: string; id: string; name: string } {
  return { type: 'dns_credential', id, name };
}
