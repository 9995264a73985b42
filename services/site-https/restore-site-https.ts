// Saves HTTPS and compression of a site as an earlier revision had them. They are saved together and published apart.
import type { CompressionSettings } from '../../contract/resources/site-https.ts';
import type { SettingsRestorer } from '../../mixins/settings-restorer.ts';
import { siteOwner } from '../../models/config/entry-owner.ts';
import { refuseMissing } from '../../models/config/rollback.ts';
import { nextUpdatedAt } from '../../models/db/updated-at.ts';
import { SITE_COMPRESSION_KIND } from '../../models/sites/site-compression.entry.ts';
import {
  certificateIds,
  missingCertificates,
  type PublishedHttps,
  SITE_HTTPS_KIND,
} from '../../models/sites/site-https.entry.ts';
import { readSiteHttps, type SiteHttps, writeSiteHttps } from '../../models/sites/site-https.ts';

export const httpsRestorer: SettingsRestorer = {
  kind: SITE_HTTPS_KIND,
  locks: 'site',
  // Follows from the domains and the certificates of the moment.
  derived: ['pendingDomains'],
  async save(sql, clusterId, id, settings, now) {
    const { pendingDomains: _pending, ...https } = settings as PublishedHttps;
    const owner = siteOwner(id);
    const references = certificateIds(https).map((name) => ({ name, owner }));
    refuseMissing(await missingCertificates(sql, clusterId, references));
    await save(sql, clusterId, id, { https }, now);
  },
};

export const compressionRestorer: SettingsRestorer = {
  kind: SITE_COMPRESSION_KIND,
  locks: 'site',
  save: (sql, clusterId, id, settings, now) =>
    save(sql, clusterId, id, { compression: settings as CompressionSettings }, now),
};

async function save(
  sql: Parameters<SettingsRestorer['save']>[0],
  clusterId: string,
  id: string,
  part: Partial<SiteHttps>,
  now: Date,
): Promise<void> {
  const before = (await readSiteHttps(sql, id))!;
  await writeSiteHttps(sql, { id, clusterId }, { ...before, ...part, updatedAt: nextUpdatedAt(before.updatedAt, now) });
}
