import { isDeepStrictEqual } from 'node:util';
import { DEFAULT_PAGES, type PagesOfSite } from '../../contract/resources/error-pages.ts';
import { DEFAULT_MAINTENANCE, type Maintenance } from '../../contract/resources/maintenance.ts';
import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { nextUpdatedAt } from '../../models/db/updated-at.ts';
import { SITE_MAINTENANCE_KIND } from '../../models/pages/site-maintenance.entry.ts';
import { SITE_PAGES_KIND } from '../../models/pages/site-pages.entry.ts';
import { readSiteSetting, writeSiteSetting } from '../../models/sites/site-setting.ts';

export const feature = {
  restores: [
    {
      kind: SITE_PAGES_KIND,
      locks: 'site',
      async save(sql, clusterId, id, then, now) {
        const { updatedAt } = (await readSiteSetting(sql, 'site_pages', id, DEFAULT_PAGES))!;
        const settings = then as PagesOfSite;
        const saved = { settings, updatedAt: nextUpdatedAt(updatedAt, now) };
        await writeSiteSetting(sql, 'site_pages', { id, clusterId }, saved);
      },
    },
    {
      kind: SITE_MAINTENANCE_KIND,
      locks: 'site',
      // Of a site that was not in maintenance nodes know nothing else: then the rest stays as it is.
      async save(sql, clusterId, id, then, now) {
        const before = (await readSiteSetting(sql, 'site_maintenance', id, DEFAULT_MAINTENANCE))!;
        const { enabled } = then as Maintenance;
        const known = !isDeepStrictEqual({ ...then, enabled: false }, DEFAULT_MAINTENANCE);
        const settings = known ? (then as Maintenance) : { ...before.settings, enabled };
        const saved = { settings, updatedAt: nextUpdatedAt(before.updatedAt, now) };
        await writeSiteSetting(sql, 'site_maintenance', { id, clusterId }, saved);
      },
    },
  ],
} satisfies ServiceFeature;
