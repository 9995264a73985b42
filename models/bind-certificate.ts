// A site gets the certificate that was asked for it. Its other settings stay.
import type { Tx } from '../runtime/write.ts';
import { recordAudit } from './audit-entry.ts';
import { siteHttpsKind } from './entries/site-https.ts';
import { requestPublication } from './publish-requests.ts';
import { lockSite } from './site.ts';
import { readSiteHttps, writeSiteHttps } from './site-https.ts';
import { nextUpdatedAt } from './updated-at.ts';

/** Locks the site. Answers the clusters for publishRequested; none where the site is gone. */
export async function bindCertificate(tx: Tx, siteId: string, certificateId: string): Promise<string[]> {
  await tx.sql('certificate').where({ id: certificateId }).update({ bind_site_id: null });
  const site = await lockSite(tx.sql, siteId);
  const before = site && (await readSiteHttps(tx.sql, siteId));
  if (!site || !before) return [];
  const additionalCertificateIds = before.https.additionalCertificateIds.filter((id) => id !== certificateId);
  const https = { ...before.https, certificateId, additionalCertificateIds };
  const updatedAt = nextUpdatedAt(before.updatedAt, tx.now);
  await writeSiteHttps(tx.sql, site, { ...before, https, updatedAt });
  const { id, name, clusterId } = site;
  await recordAudit(tx, 'site.https_update', { type: 'site', id, name }, { certificateId });
  const entries = [{ kind: siteHttpsKind.kind, id }];
  await requestPublication(tx, { entries, reason: 'certificate_updated', params: { site: name, siteId: id } }, [
    clusterId,
  ]);
  return [clusterId];
}
