import { X509Certificate } from 'node:crypto';
import { fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import {
  CERTIFICATE_WARNINGS,
  type Certificate,
  type CertificateSummary,
  type certificates,
  SHOWN_USERS,
} from '../../contract/resources/certificates.ts';
import {
  type CertificateRow,
  certificateById,
  certificateCount,
  certificatePage,
  chainOf,
  sitesOfCertificate,
} from '../../models/certificates/certificate.ts';
import { missingIssuer } from '../../models/certificates/certificate-chain.ts';
import { oneLine } from '../../models/certificates/certificate-check.ts';
import type { Runtime } from '../../runtime/runtime.ts';

export async function listCertificates(
  { pools }: Runtime,
  input: Input<typeof certificates.list>,
): Promise<Output<typeof certificates.list>> {
  const { limit, offset } = pageOf(input);
  const [rows, total] = await Promise.all([
    certificatePage(pools.api, input, limit, offset),
    certificateCount(pools.api, input),
  ]);
  return { items: rows.map(presentSummary), total };
}

/** Throws CERTIFICATE_NOT_FOUND. */
export async function getCertificate({ pools }: Runtime, { id }: Input<typeof certificates.get>): Promise<Certificate> {
  return presentCertificate(pools.api, (await certificateById(pools.api, id)) ?? fail('CERTIFICATE_NOT_FOUND'));
}

/** A certificate with its chain and its sites; never its key. */
export async function presentCertificate(sql: Runtime['pools']['api'], row: CertificateRow): Promise<Certificate> {
  const [chain, sites] = [await chainOf(sql, row.id), await sitesOfCertificate(sql, row.id, SHOWN_USERS)];
  return { ...presentSummary(row), warnings: warningsOf(chain), chain: chain.map(presentLink), sites };
}

function presentSummary({ requestedNames, challenge: _challenge, ...row }: CertificateRow): CertificateSummary {
  const covered = new Set(row.fingerprint === null ? [] : row.names);
  return {
    ...row,
    pendingNames: (requestedNames ?? []).filter((name) => !covered.has(name)),
    notBefore: row.notBefore?.toISOString() ?? null,
    notAfter: row.notAfter?.toISOString() ?? null,
    renewAt: row.renewAt?.toISOString() ?? null,
    createdAt: row.createdAt.toISOString(),
    updatedAt: row.updatedAt.toISOString(),
  };
}

function warningsOf(chain: readonly Buffer[]): Certificate['warnings'] {
  const missing = missingIssuer(chain);
  if (!missing) return [];
  const issuer = oneLine(missing.issuer);
  const message = CERTIFICATE_WARNINGS.chain_incomplete.replace('{issuer}', () => issuer);
  return [{ code: 'chain_incomplete', params: { issuer }, message }];
}

function presentLink(der: Buffer): Certificate['chain'][number] {
  const certificate = new X509Certificate(der);
  return {
    subject: oneLine(certificate.subject),
    issuer: oneLine(certificate.issuer),
    notBefore: certificate.validFromDate.toISOString(),
    notAfter: certificate.validToDate.toISOString(),
    serial: certificate.serialNumber.toLowerCase(),
    fingerprint: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
  };
}
