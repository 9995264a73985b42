// What people ask of authorities. The worker of orders does it: here it is only written down.
import { badField, fail } from '../../../contract/errors.ts';
import type { Input } from '../../../contract/procedure.ts';
import type { certificateRequests } from '../../../contract/resources/certificate-requests.ts';
import type { Certificate } from '../../../contract/resources/certificates.ts';
import { uncoveredDomains } from '../../../contract/scalars/certificate-coverage.ts';
import { formatDomain } from '../../../contract/scalars/domain.ts';
import { insertRequest, releaseFailedBinding, requestRenewal } from '../../../models/acme-certificate.ts';
import type { CertificateRequest } from '../../../models/acme-order.ts';
import { recordAudit } from '../../../models/audit-entry.ts';
import { certificateById, lockCertificate } from '../../../models/certificate.ts';
import { certificateName } from '../../../models/certificate-check.ts';
import { keepDnsCredential } from '../../../models/dns-credential.ts';
import { lockSite } from '../../../models/site.ts';
import { violatedConstraint } from '../../../models/violations.ts';
import type { Call } from '../../../runtime/call.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { type Tx, write } from '../../../runtime/write.ts';
import { presentCertificate } from '../list-certificates.ts';
import { ensureAccount } from './account.ts';
import { directoryAt, ownExternalAccount } from './authority.ts';
import type { ExternalAccount } from './protocol/jws.ts';

type RequestInput = Input<typeof certificateRequests.request>;

/** Throws BAD_REQUEST and the contract's errors. */
export async function requestCertificate(runtime: Runtime, input: RequestInput, call: Call): Promise<Certificate> {
  const { ca = 'letsencrypt', keyType = 'ec256', challenge = 'http01', autoRenew = true, skipDnsCheck = false } = input;
  const { bindSiteId = null, email, dnsCredentialId = null } = input;
  if (challenge === 'dns01' && dnsCredentialId === null) badField('/dnsCredentialId', 'required');
  if (challenge === 'http01' && dnsCredentialId !== null)
    badField('/dnsCredentialId', 'challenge', { challenge: 'dns01' });
  const names = namesOf(input);
  const at = (await directoryAt(runtime, ca)) ?? fail('ACME_DIRECTORY_NOT_CONFIGURED');
  const external = externalOf(input) ?? (ca === 'custom' ? await ownExternalAccount(runtime) : null);
  if (ca === 'zerossl' && external === null) badField('/eabKid', 'required');
  return write(runtime, call, { status: 201 }, async (tx) => {
    if (bindSiteId !== null) await assertBindable(tx, bindSiteId, names);
    if (dnsCredentialId !== null && !(await keepDnsCredential(tx.sql, dnsCredentialId)))
      fail('DNS_CREDENTIAL_NOT_FOUND');
    const accountId = await ensureAccount(tx, runtime.sealer, { directoryUrl: at.url, email, external });
    const request: CertificateRequest = {
      ca,
      accountId,
      email,
      challenge,
      keyType,
      dnsCredentialId,
      skipDnsCheck,
    };
    const name = input.name.trim();
    const asked = { name, names, request, autoRenew, bindSiteId };
    const id = await insertRequest(tx.sql, asked, tx.now).catch((error: unknown) => {
      if (violatedConstraint(error) === 'certificate_binding') fail('CERTIFICATE_BUSY');
      throw error;
    });
    const said = { names: names.slice(0, 50), ca, challenge, dnsCredentialId, keyType, siteId: bindSiteId };
    await recordAudit(tx, 'certificate.request', { type: 'certificate', id, name }, said);
    return presentCertificate(tx.sql, (await certificateById(tx.sql, id))!);
  });
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
function namesOf({ names, challenge = 'http01' }: RequestInput): string[] {
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
function externalOf({ eabKid = '', eabHmacKey = '' }: RequestInput): ExternalAccount | null {
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
