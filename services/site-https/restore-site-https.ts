// Saves HTTPS and compression of a site as an earlier revision had them. They are saved together and published apart.
import type { CompressionSettings } from '../../contract/resources/site-https.ts';
import { SITE_COMPRESSION_KIND } from '../../models/entries/site-compression.ts';
import { type PublishedHttps, SITE_HTTPS_KIND } from '../../models/entries/site-https.ts';
import { readSiteHttps, type SiteHttps, writeSiteHttps } from '../../models/site-https.ts';
import { nextUpdatedAt } from '../../models/updated-at.ts';
import type { SettingsRestorer } from '../../runtime/settings-restorer.ts';

type Save = SettingsRestorer['save'];

export const httpsRestorer: SettingsRestorer = {
  kind: SITE_HTTPS_KIND,
  locks: 'site',
  // Follows from the domains and the certificates of the moment.
  keeps: ['pendingDomains'],
  save: saving((settings) => {
    const { pendingDomains: _pending, ...https } = settings as PublishedHttps;
    return { https };
  }),
};

export const compressionRestorer: SettingsRestorer = {
  kind: SITE_COMPRESSION_KIND,
  locks: 'site',
  save: saving((settings) => ({ compression: settings as CompressionSettings })),
};

function saving(partOf: (settings: object) => Partial<SiteHttps>): Save {
  return async (sql, clusterId, id, settings, now) => {
    const before = (await readSiteHttps(sql, id))!;
    const updatedAt = nextUpdatedAt(before.updatedAt, now);
    await writeSiteHttps(sql, { id, clusterId }, { ...before, ...partOf(settings), updatedAt });
  };
}
