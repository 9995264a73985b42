import { fail } from '../../../contract/errors.ts';
import { pageOf } from '../../../contract/page.ts';
import type { Input, Output } from '../../../contract/procedure.ts';
import { type DnsCredential, dnsCredentials } from '../../../contract/resources/dns-credentials.ts';
import { type Implementation, implement } from '../../../mixins/contract-service.ts';
import {
  type DnsCredentialRow,
  dnsCredentialById,
  dnsCredentialPage,
} from '../../../models/certificates/dns-credential.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { tryDnsCredential } from './try.ts';
import { createDnsCredential, deleteDnsCredential, updateDnsCredential } from './write.ts';

/** Credentials for DNS, as procedures of the certificates service. */
export function dnsCredentialProcedures(runtime: Runtime): Implementation[] {
  return [
    implement(dnsCredentials.list, (input) => listDnsCredentials(runtime, input)),
    implement(dnsCredentials.get, (input) => getDnsCredential(runtime, input)),
    implement(dnsCredentials.create, async (input, call) => present(await createDnsCredential(runtime, input, call))),
    implement(dnsCredentials.update, async (input, call) => present(await updateDnsCredential(runtime, input, call))),
    implement(dnsCredentials.try, (input, call) => tryDnsCredential(runtime, input, call)),
    implement(dnsCredentials.delete, (input, call) => deleteDnsCredential(runtime, input, call)),
  ];
}

async function listDnsCredentials(
  { pools }: Runtime,
  input: Input<typeof dnsCredentials.list>,
): Promise<Output<typeof dnsCredentials.list>> {
  const { limit, offset } = pageOf(input);
  const { rows, total } = await dnsCredentialPage(pools.api, input.search, limit, offset);
  return { items: rows.map(present), total };
}

/** Throws DNS_CREDENTIAL_NOT_FOUND. */
async function getDnsCredential({ pools }: Runtime, { id }: Input<typeof dnsCredentials.get>): Promise<DnsCredential> {
  return present((await dnsCredentialById(pools.api, id)) ?? fail('DNS_CREDENTIAL_NOT_FOUND'));
}

/** Without its secret. */
function present(given: DnsCredentialRow): DnsCredential {
  const { settings, secret: _secret, clusterCount: _clusterCount, createdAt, updatedAt, ...row } = given;
  const { fields, nameservers } = settings;
  return {
    ...row,
    url: fields.url ?? null,
    server: fields.server ?? null,
    keyName: fields.tsig_key_name ?? null,
    algorithm: (fields.tsig_algorithm as DnsCredential['algorithm']) ?? null,
    nameservers,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}
