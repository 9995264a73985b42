// HTTPS and compression of a site, read and saved as a whole.
import { isDeepStrictEqual } from 'node:util';
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { HttpsSettings, siteHttps } from '../../contract/resources/site-https.ts';
import { uncoveredDomains } from '../../contract/scalars/certificate-coverage.ts';
import { type Domain, formatDomain } from '../../contract/scalars/domain.ts';
import { type CertificateRow, certificatesById, keepCertificates } from '../../models/certificates/certificate.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { publishHttps } from '../../models/sites/publish-https.ts';
import { clusterOfSite, lockSite, siteById } from '../../models/sites/site.ts';
import { certificateIds } from '../../models/sites/site-https.entry.ts';
import { readSiteHttps, type SiteHttps } from '../../models/sites/site-https.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';
import { givenHttps } from './given-https.ts';

type State = Output<typeof siteHttps.get>;
type Certificates = ReadonlyMap<string, CertificateRow>;

/** Throws SITE_NOT_FOUND. */
export async function getSiteHttps({ pools }: Runtime, { id }: Input<typeof siteHttps.get>): Promise<State> {
  const sql = pools.api;
  const saved = (await readSiteHttps(sql, id)) ?? fail('SITE_NOT_FOUND');
  const site = (await siteById(sql, id)) ?? fail('SITE_NOT_FOUND');
  return present(site, saved, await certificatesById(sql, certificateIds(saved.https)));
}

/** Saves all settings and publishes what nodes run differently; equal ones are not saved again. Throws the contract's errors. */
export async function setSiteHttps(
  runtime: Runtime,
  { id, settings, expectedUpdatedAt }: Input<typeof siteHttps.set>,
  call: Call,
): Promise<Output<typeof siteHttps.set>> {
  const clusterId = (await clusterOfSite(runtime.pools.api, id)) ?? fail('SITE_NOT_FOUND');
  return write(runtime, call, { clusterId }, async (tx) => {
    const site = (await lockSite(tx.sql, id)) ?? fail('SITE_NOT_FOUND');
    const before = (await readSiteHttps(tx.sql, id))!;
    assertUpdatedAt(expectedUpdatedAt, before.updatedAt);
    const given = givenHttps(settings, site);
    const has = certificateIds(before.https);
    const certificates = await keepCertificates(tx.sql, [...has, ...certificateIds(given.https)]);
    assertUsable(given.https, certificates, has, site.domains, tx.now);
    const changed = changedFields(before, given);
    const saved = changed.length === 0 ? before : { ...given, updatedAt: nextUpdatedAt(before.updatedAt, tx.now) };
    return { ...present(site, saved, certificates), revision: await publishHttps(tx, site, saved, changed) };
  });
}

/**
 * What the site has already is taken as it is, or nobody could switch anything off once it has expired. Throws
 * CERTIFICATE_NOT_FOUND, CERTIFICATE_UNAVAILABLE and CERTIFICATE_DOMAIN_MISMATCH.
 */
function assertUsable(
  https: HttpsSettings,
  certificates: Certificates,
  has: readonly string[],
  domains: readonly Domain[],
  now: Date,
): void {
  const ids = certificateIds(https);
  if (ids.length === 0) return;
  for (const id of ids) {
    const { name, fingerprint, notAfter } = certificates.get(id) ?? fail('CERTIFICATE_NOT_FOUND', { id });
    if (!has.includes(id) && (fingerprint === null || notAfter! <= now)) fail('CERTIFICATE_UNAVAILABLE', { id, name });
  }
  const without = uncoveredDomains(domains, namesOf(ids, certificates));
  const left = has.length === 0 ? [] : uncoveredDomains(domains, namesOf(has, certificates));
  const uncovered = without.filter((domain) => !left.includes(domain));
  if (uncovered.length > 0) fail('CERTIFICATE_DOMAIN_MISMATCH', { domains: uncovered.map(formatDomain) });
}

/** Names that the certificates have or are asked for: those are pending until they are issued. */
function namesOf(ids: readonly string[], certificates: Certificates): string[] {
  return ids.flatMap((id) => {
    const { names, requestedNames, autoRenew } = certificates.get(id)!;
    return [...names, ...(autoRenew ? (requestedNames ?? []) : [])];
  });
}

function changedFields(before: SiteHttps, after: Omit<SiteHttps, 'updatedAt'>): string[] {
  const [was, is] = [before, after].map(
    ({ https, compression }): Record<string, unknown> => ({ ...https, ...compression }),
  );
  return Object.keys(is!).filter((field) => !isDeepStrictEqual(was![field], is![field]));
}

function present(
  { id, domains }: { id: string; domains: readonly Domain[] },
  { https, compression, updatedAt }: SiteHttps,
  certificates: Certificates,
): State {
  const used = certificateIds(https).flatMap((one) => certificates.get(one) ?? []);
  const covered = used.flatMap(({ names, fingerprint }) => (fingerprint === null ? [] : names));
  return {
    siteId: id,
    settings: { ...https, ...compression },
    certificates: used.map(({ id: certificateId, name, names, source, status, notAfter }) => ({
      id: certificateId,
      name,
      names,
      source,
      status,
      notAfter: notAfter?.toISOString() ?? null,
    })),
    pendingDomains: https.certificateId === null ? [] : uncoveredDomains(domains, covered).map(formatDomain),
    updatedAt: updatedAt.toISOString(),
  };
}
