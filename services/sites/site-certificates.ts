// What becomes of the certificates of a site whose domains change. Names that an authority can be asked for are reached by
// plain HTTP alone until they are covered; an upload that does not cover them is refused.
import { fail } from '../../contract/errors.ts';
import { requestableName, uncoveredDomains } from '../../contract/scalars/certificate-coverage.ts';
import { type Domain, formatDomain } from '../../contract/scalars/domain.ts';
import { askForNames, type CertificateRow, keepCertificates } from '../../models/certificates/certificate.ts';
import { askableNames } from '../../models/certificates/certificate-names.ts';
import type { ChangedEntry } from '../../models/config/publish.ts';
import { nextUpdatedAt } from '../../models/db/updated-at.ts';
import type { SiteRow } from '../../models/sites/site.ts';
import { certificateIds, SITE_HTTPS_KIND } from '../../models/sites/site-https.entry.ts';
import { readSiteHttps, writeSiteHttps } from '../../models/sites/site-https.ts';
import type { Tx } from '../../runtime/write.ts';

/** The certificate that is to be issued anew for a site. */
export interface Reissue {
  id: string;
  name: string;
}

/**
 * Settles HTTPS of a site that is locked and gets these domains: what has to be published with it, and the certificate that
 * is issued anew for names that it lacks. Throws CERTIFICATE_DOMAIN_MISMATCH.
 */
export async function followDomains(
  tx: Tx,
  { id, clusterId }: SiteRow,
  domains: readonly Domain[],
): Promise<{ entries: ChangedEntry[]; reissue: Reissue | null }> {
  const saved = (await readSiteHttps(tx.sql, id))!;
  const kept = keptExclusions(saved.https.redirectExcludedDomains, domains);
  if (kept.length < saved.https.redirectExcludedDomains.length) {
    const https = { ...saved.https, redirectExcludedDomains: kept };
    const updatedAt = nextUpdatedAt(saved.updatedAt, tx.now);
    await writeSiteHttps(tx.sql, { id, clusterId }, { ...saved, https, updatedAt });
  }
  const ids = certificateIds(saved.https);
  if (ids.length === 0) return { entries: [], reissue: null };
  const certificates = [...(await keepCertificates(tx.sql, ids)).values()];
  const issued = certificates.filter(({ fingerprint }) => fingerprint !== null);
  const uncovered = uncoveredDomains(
    domains,
    issued.flatMap(({ names }) => names),
  );
  const reissue = uncovered.length > 0 ? await askFor(tx, certificates, uncovered) : null;
  return { entries: [{ kind: SITE_HTTPS_KIND, id }], reissue };
}

/** What the site has no more cannot be excluded from its redirect. */
function keptExclusions(excluded: readonly string[], domains: readonly Domain[]): string[] {
  const known = new Set(domains.map(formatDomain));
  return excluded.filter((text) => known.has(text));
}

async function askFor(
  tx: Tx,
  certificates: readonly CertificateRow[],
  uncovered: readonly Domain[],
): Promise<Reissue | null> {
  const wanted = uncovered.flatMap((domain) => requestableName(domain) ?? []);
  const asked = new Set(
    certificates.flatMap(({ requestedNames, autoRenew }) => (autoRenew ? (requestedNames ?? []) : [])),
  );
  const missing = wanted.filter((name) => !asked.has(name));
  if (missing.length === 0) return null;
  const renewing = certificates.find((certificate) => askableNames(certificate, missing).length === missing.length);
  if (!renewing) return fail('CERTIFICATE_DOMAIN_MISMATCH', { domains: uncovered.map(formatDomain) });
  await askForNames(tx.sql, renewing.id, missing, tx.now);
  return { id: renewing.id, name: renewing.name };
}
