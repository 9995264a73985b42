// Saves and publishes HTTPS and compression of a site whose lock is held.
import type { Tx } from '../../runtime/write.ts';
import { publish } from '../config/publish.ts';
import { assertCapabilities } from '../config/required-capabilities.ts';
import { nextUpdatedAt } from '../db/updated-at.ts';
import { lockSite, type SiteRow } from './site.ts';
import { compileCompression, SITE_COMPRESSION_KIND } from './site-compression.entry.ts';
import { certificateIds, compileHttps, SITE_HTTPS_KIND, servedCertificates } from './site-https.entry.ts';
import { readSiteHttps, type SiteHttps, writeSiteHttps } from './site-https.ts';

/** Answers the revision; null when nodes get nothing else. `changed`: names of the fields; none: it was saved before. */
export async function publishHttps(
  tx: Tx,
  { id, clusterId, name }: Pick<SiteRow, 'id' | 'clusterId' | 'name'>,
  saved: SiteHttps,
  changed: readonly string[],
): Promise<string | null> {
  const again = changed.length === 0;
  if (!again) await writeSiteHttps(tx.sql, { id, clusterId }, saved);
  const certificates = certificateIds(saved.https);
  return publish(tx, {
    clusterId,
    entries: [
      { kind: SITE_HTTPS_KIND, id },
      { kind: SITE_COMPRESSION_KIND, id, compiled: compileCompression(saved.compression) },
    ],
    reason: 'certificate_updated',
    params: { site: name, siteId: id, changed },
    audit: { action: 'site.https_update', target: { type: 'site', id, name }, metadata: { changed, certificates } },
    again,
  });
}

/**
 * Makes an issued certificate the first one of a site, whose other settings stay; answers the revision, null when there is
 * no such site or it has it already. Locks the site: whoever locks the certificate as well does so afterwards.
 * Throws NODE_CAPABILITY_REQUIRED before it writes anything, when a job of the console binds it.
 */
export async function bindCertificate(tx: Tx, siteId: string, certificateId: string): Promise<string | null> {
  const site = await lockSite(tx.sql, siteId);
  if (!site) return null;
  const before = (await readSiteHttps(tx.sql, siteId))!;
  if (before.https.certificateId === certificateId) return null;
  const additionalCertificateIds = before.https.additionalCertificateIds.filter((id) => id !== certificateId);
  const https = { ...before.https, certificateId, additionalCertificateIds };
  const served = await servedCertificates(tx.sql, certificateIds(https));
  await assertCapabilities(tx, site.clusterId, compileHttps(https, site.domains, served)?.features ?? []);
  const updatedAt = nextUpdatedAt(before.updatedAt, tx.now);
  return publishHttps(tx, site, { ...before, https, updatedAt }, ['certificateId']);
}
