// What people ask of authorities. The worker of orders does it: here it is only written down.
import { badField, fail } from '../../../contract/errors.ts';
import type { Input } from '../../../contract/procedure.ts';
import type { CertificateProgress, certificateRequests } from '../../../contract/resources/certificate-requests.ts';
import type { Certificate } from '../../../contract/resources/certificates.ts';
import { uncoveredDomains } from '../../../contract/scalars/certificate-coverage.ts';
import { formatDomain } from '../../../contract/scalars/domain.ts';
import { recordAudit } from '../../../models/audit/audit-entry.ts';
import {
  insertRehearsal,
  insertRequest,
  releaseFailedBinding,
  requestRenewal,
} from '../../../models/certificates/acme-certificate.ts';
import type { CertificateRequest } from '../../../models/certificates/acme-order.ts';
import { certificateById, lockCertificate } from '../../../models/certificates/certificate.ts';
import { certificateName } from '../../../models/certificates/certificate-check.ts';
import { keepDnsCredential } from '../../../models/certificates/dns-credential.ts';
import { violatedConstraint } from '../../../models/db/violations.ts';
import { lockSite } from '../../../models/sites/site.ts';
import type { Call } from '../../../runtime/call.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { type Tx, write } from '../../../runtime/write.ts';
import { presentCertificate } from '../list-certificates.ts';
import { ensureAccount } from './account.ts';
import { type Ca, directoryAt, ownExternalAccount } from './authority.ts';
import { notBegun } from './progress.ts';
import type { ExternalAccount } from './protocol/jws.ts';

/** What is asked for and how, beside whom. */
type Asked = Omit<Input<typeof certificateRequests.rehearse>, 'ca'>;

/** Throws BAD_REQUEST and the contract's errors. */
export async function requestCertificate(
  runtime: Runtime,
  input: Input<typeof certificateRequests.request>,
  call: Call,
): Promise<Certificate> {
  const { ca = 'letsencrypt', autoRenew = true, bindSiteId = null } = input;
  const { names, save } = await readAsked(runtime, input, ca);
  return write(runtime, call, { status: 201 }, async (tx) => {
    if (bindSiteId !== null) await assertBindable(tx, bindSiteId, names);
    const request = await save(tx);
    const name = input.name.trim();
    const asked = { name, names, request, autoRenew, bindSiteId };
    const id = await insertRequest(tx.sql, asked, tx.now).catch((error: unknown) => {
      if (violatedConstraint(error) === 'certificate_binding') fail('CERTIFICATE_BUSY');
      throw error;
    });
    const said = { ...toldOf(names, request), siteId: bindSiteId };
    await recordAudit(tx, 'certificate.request', { type: 'certificate', id, name }, said);
    return presentCertificate(tx.sql, (await certificateById(tx.sql, id))!);
  });
}

/** Orders a certificate of which nothing is kept. Throws BAD_REQUEST and the contract's errors. */
export async function rehearseCertificate(
  runtime: Runtime,
  input: Input<typeof certificateRequests.rehearse>,
  call: Call,
): Promise<CertificateProgress> {
  const { names, save } = await readAsked(runtime, input, input.ca === 'custom' ? 'custom' : 'letsencryptStaging');
  return write(runtime, call, { status: 201 }, async (tx) => {
    const request = await save(tx);
    const name = names[0]!;
    const id = await insertRehearsal(tx.sql, { name, names, request }, tx.now);
    const said = toldOf(names, request);
    await recordAudit(tx, 'certificate.rehearse', { type: 'certificate', id, name }, said);
    return notBegun(id, tx.now);
  });
}

function toldOf(names: readonly string[], { ca, challenge, dnsCredentialId, keyType }: CertificateRequest) {
  return { names: names.slice(0, 50), ca, challenge, dnsCredentialId, keyType };
}

/** The names, and what saves how they are asked for. Throws BAD_REQUEST, ACME_DIRECTORY_NOT_CONFIGURED. */
async function readAsked(
  runtime: Runtime,
  asked: Asked,
  ca: Ca,
): Promise<{ names: string[]; save(tx: Tx): Promise<CertificateRequest> }> {
  const { keyType = 'ec256', challenge = 'http01', skipDnsCheck = false, email, dnsCredentialId = null } = asked;
  if (challenge === 'dns01' && dnsCredentialId === null) badField('/dnsCredentialId', 'required');
  if (challenge === 'http01' && dnsCredentialId !== null)
    badField('/dnsCredentialId', 'challenge', { challenge: 'dns01' });
  const names = namesOf(asked);
  const at = (await directoryAt(runtime, ca)) ?? fail('ACME_DIRECTORY_NOT_CONFIGURED');
  const external = externalOf(asked) ?? (ca === 'custom' ? await ownExternalAccount(runtime) : null);
  if (ca === 'zerossl' && external === null) badField('/eabKid', 'required');
  return {
    names,
    async save(tx) {
      if (dnsCredentialId !== null && !(await keepDnsCredential(tx.sql, dnsCredentialId)))
        fail('DNS_CREDENTIAL_NOT_FOUND');
      const accountId = await ensureAccount(tx, runtime.sealer, { directoryUrl: at.url, email, external });
      return { ca, accountId, email, challenge, keyType, dnsCredentialId, skipDnsCheck };
    },
  };
}

/** Throws CERTIFICATE_NOT_FOUND, CERTIFICATE_NOT_ORDERED, CERTIFICATE_BUSY. */
export async function renewCertificate(
  runtime: Runtime,
  { id }: Input<typeof certificateRequests.renew>,
  call: Call,
): Promise<Certificate> {
  return write(runtime, call, {}, async (tx) => {
    const row = (await lockCertificate(tx.sql, id)) ?? fail('CERTIFICATE_NOT_FOUND');
    if (row.source !== 'acme') fail('CERTIFICATE_NOT_ORDERED');
    if (row.status === 'issuing') fail('CERTIFICATE_BUSY');
    await requestRenewal(tx.sql, id, tx.now);
    await recordAudit(tx, 'certificate.renew', { type: 'certificate', id, name: row.name });
    return presentCertificate(tx.sql, (await certificateById(tx.sql, id))!);
  });
}

/** Canonical, in their order. Throws BAD_REQUEST. */
function namesOf({ names, challenge = 'http01' }: Asked): string[] {
  const seen = new Set<string>();
  return names.map((text, index) => {
    const name = certificateName(text.trim());
    const path = `/names/${index}`;
    if (name === null || !name.replace(/^[*][.]/, '').includes('.')) return badField(path, 'dnsName');
    if (seen.has(name)) badField(path, 'repeated');
    if (name.startsWith('*.') && challenge === 'http01') badField(path, 'wildcard', { challenge: 'dns01' });
    seen.add(name);
    return name;
  });
}

/** Both or none. Throws BAD_REQUEST. */
function externalOf({ eabKid = '', eabHmacKey = '' }: Asked): ExternalAccount | null {
  if (eabKid === '' && eabHmacKey === '') return null;
  if (eabKid === '') badField('/eabKid', 'required');
  if (eabHmacKey === '') badField('/eabHmacKey', 'required');
  return { kid: eabKid, hmacKey: eabHmacKey };
}

/** The site stays as it is until the end of the transaction. */
async function assertBindable(tx: Tx, siteId: string, names: readonly string[]): Promise<void> {
  const site = (await lockSite(tx.sql, siteId)) ?? fail('SITE_NOT_FOUND');
  const domains = uncoveredDomains(site.domains, names).map(formatDomain);
  if (domains.length > 0) fail('CERTIFICATE_DOMAIN_MISMATCH', { domains });
  await releaseFailedBinding(tx.sql, siteId);
}
