// Writes of certificates. Their keys leave this file sealed alone.
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { Certificate, certificates } from '../../contract/resources/certificates.ts';
import { formatDomain } from '../../contract/scalars/domain.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import {
  type CertificateRow,
  certificateById,
  insertUpload,
  lockCertificate,
  deleteCertificate as removeCertificate,
  replaceMaterial,
  sitesOfCertificate,
} from '../../models/certificates/certificate.ts';
import { type CertificateMaterial, checkChain } from '../../models/certificates/certificate-check.ts';
import { assertUpdatedAt } from '../../models/db/updated-at.ts';
import { lostDomains } from '../../models/sites/site-https.ts';
import { publishRequested } from '../../pipeline/publish-requested.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';
import { completeChain } from './complete-chain.ts';
import { presentCertificate } from './list-certificates.ts';

/** Named in a refusal. */
const SHOWN = 5;

/** Throws the errors of checkChain. */
export async function uploadCertificate(
  runtime: Runtime,
  { name, chainPem, privateKeyPem }: Input<typeof certificates.upload>,
  call: Call,
): Promise<Certificate> {
  const material = await completeChain(runtime, checkChain(chainPem, privateKeyPem, new Date()));
  return write(runtime, call, { status: 201 }, async (tx) => {
    const given = { name: name.trim(), material, now: tx.now };
    const id = await insertUpload(tx.sql, runtime.sealer, given);
    await recordAudit(tx, 'certificate.upload', { type: 'certificate', id, name: given.name }, told(material));
    return presentCertificate(tx.sql, (await certificateById(tx.sql, id))!);
  });
}

/**
 * Throws CERTIFICATE_NOT_FOUND, CERTIFICATE_NOT_UPLOADED, UPDATED_AT_MISMATCH, CERTIFICATE_DOMAIN_MISMATCH and the errors
 * of checkChain.
 */
export async function replaceCertificate(
  runtime: Runtime,
  { id, chainPem, privateKeyPem, expectedUpdatedAt }: Input<typeof certificates.replace>,
  call: Call,
): Promise<Certificate> {
  const material = await completeChain(runtime, checkChain(chainPem, privateKeyPem, new Date()));
  let clusterIds: string[] = [];
  const certificate = await write(runtime, call, {}, async (tx) => {
    const row = (await lockCertificate(tx.sql, id)) ?? fail('CERTIFICATE_NOT_FOUND');
    if (row.source !== 'upload') fail('CERTIFICATE_NOT_UPLOADED');
    assertUpdatedAt(expectedUpdatedAt, row.updatedAt);
    const domains = (await lostDomains(tx.sql, id, material.names)).map(formatDomain);
    if (domains.length > 0) fail('CERTIFICATE_DOMAIN_MISMATCH', { domains });
    clusterIds = await replaceMaterial(tx, runtime.sealer, row, material);
    await recordAudit(tx, 'certificate.replace', targetOf(row), told(material));
    return presentCertificate(tx.sql, (await certificateById(tx.sql, id))!);
  });
  await publishRequested(runtime, call, clusterIds);
  return certificate;
}

/** Throws CERTIFICATE_NOT_FOUND, CERTIFICATE_IN_USE, CERTIFICATE_BUSY. */
export async function deleteCertificate(
  runtime: Runtime,
  { id }: Input<typeof certificates.delete>,
  call: Call,
): Promise<Output<typeof certificates.delete>> {
  return write(runtime, call, {}, async (tx) => {
    const row = (await lockCertificate(tx.sql, id)) ?? fail('CERTIFICATE_NOT_FOUND');
    if (row.status === 'issuing') fail('CERTIFICATE_BUSY');
    const sites = await sitesOfCertificate(tx.sql, id, SHOWN);
    if (sites.length > 0) fail('CERTIFICATE_IN_USE', { sites: sites.map(({ name }) => name) });
    await removeCertificate(tx.sql, id);
    await recordAudit(tx, 'certificate.delete', targetOf(row));
    return {};
  });
}

function targetOf({ id, name }: CertificateRow): { type: string; id: string; name: string } {
  return { type: 'certificate', id, name };
}

/** What the audit log says of material. */
function told({ fingerprint, names, notAfter }: CertificateMaterial): Record<string, unknown> {
  return { fingerprint: fingerprint.toString('hex'), names: names.slice(0, 50), notAfter: notAfter.toISOString() };
}
