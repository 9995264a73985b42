// Saves a site as an earlier revision had it.
import { isDeepStrictEqual } from 'node:util';
import type { SettingsRestorer } from '../../mixins/settings-restorer.ts';
import { nextUpdatedAt } from '../../models/db/updated-at.ts';
import { siteKind } from '../../models/sites/site.entry.ts';
import { replaceDomains, type SiteContent, siteById, updateSite } from '../../models/sites/site.ts';

export const siteRestorer: SettingsRestorer = {
  kind: siteKind.kind,
  locks: 'site',
  keeps: ['enabled'],
  async save(sql, _clusterId, id, settings, now) {
    const before = (await siteById(sql, id))!;
    const content = { ...before, ...(settings as SiteContent) };
    await updateSite(sql, id, content, nextUpdatedAt(before.updatedAt, now));
    if (!isDeepStrictEqual(before.domains, content.domains)) await replaceDomains(sql, id, content.domains);
  },
};
