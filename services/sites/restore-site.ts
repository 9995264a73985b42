// Saves a site as an earlier revision had it.
import { isDeepStrictEqual } from 'node:util';
import type { SettingsRestorer } from '../../mixins/settings-restorer.ts';
import { nextUpdatedAt } from '../../models/db/updated-at.ts';
import { SITE_RULES_KIND } from '../../models/rules/site-rules.entry.ts';
import { ORIGIN_SETTINGS_BEFORE, siteKind } from '../../models/sites/site.entry.ts';
import { replaceDomains, type SiteContent, setSiteEnabled, siteById, updateSite } from '../../models/sites/site.ts';
import { SITE_CONTENT_KIND } from '../../models/sites/site-content.entry.ts';
import { SITE_HTTPS_KIND } from '../../models/sites/site-https.entry.ts';
import { entriesBeside } from '../../models/sites/site-ports.ts';
import { SITE_REQUESTS_KIND } from '../../models/sites/site-requests.entry.ts';

/** Content settings that the kind of sites does not publish. */
function contentRestorer(kind: string): SettingsRestorer {
  return {
    kind,
    locks: 'site',
    async save(sql, _clusterId, id, settings, now) {
      const before = (await siteById(sql, id))!;
      const content = { ...before, contentSettings: { ...before.contentSettings, ...settings } };
      await updateSite(sql, id, content, nextUpdatedAt(before.updatedAt, now));
    },
  };
}

export const siteRequestsRestorer = contentRestorer(SITE_REQUESTS_KIND);
export const siteContentRestorer = contentRestorer(SITE_CONTENT_KIND);

/** The content with settings that may lack some of the content settings, which stay, and settings that came later. */
function withSettings<S extends SiteContent>(before: S, settings: SiteContent): S {
  const contentSettings = { ...before.contentSettings, ...settings.contentSettings };
  const originSettings = { ...ORIGIN_SETTINGS_BEFORE, ...settings.originSettings };
  return { ...before, ...settings, originSettings, contentSettings };
}

export const siteRestorer: SettingsRestorer = {
  kind: siteKind.kind,
  locks: 'site',
  keeps: ['enabled'],
  // Rules name groups of origins; HTTPS follows the domains.
  async beside(sql, id, paths) {
    const { ports } = (await siteById(sql, id))!;
    const moved = paths.some((path) => path.startsWith('domains'));
    return [{ kind: SITE_RULES_KIND, id }, ...(moved ? [{ kind: SITE_HTTPS_KIND, id }] : []), ...entriesBeside(ports)];
  },
  async save(sql, _clusterId, id, settings, now) {
    const before = (await siteById(sql, id))!;
    const content = withSettings(before, settings as SiteContent & { enabled: boolean });
    const updatedAt = nextUpdatedAt(before.updatedAt, now);
    await updateSite(sql, id, content, updatedAt);
    if (before.enabled !== content.enabled) await setSiteEnabled(sql, id, content.enabled, updatedAt);
    if (!isDeepStrictEqual(before.domains, content.domains)) await replaceDomains(sql, id, content.domains);
  },
};
