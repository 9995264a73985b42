// Saves a site as an earlier revision had it.
import { isDeepStrictEqual } from 'node:util';
import type { SettingsRestorer } from '../../mixins/settings-restorer.ts';
import { nextUpdatedAt } from '../../models/db/updated-at.ts';
import { SITE_RULES_KIND } from '../../models/rules/site-rules.entry.ts';
import { siteKind } from '../../models/sites/site.entry.ts';
import { replaceDomains, type SiteContent, setSiteEnabled, siteById, updateSite } from '../../models/sites/site.ts';
import { SITE_HTTPS_KIND } from '../../models/sites/site-https.entry.ts';
import { entriesBeside } from '../../models/sites/site-ports.ts';
import { type RequestSettings, SITE_REQUESTS_KIND } from '../../models/sites/site-requests.entry.ts';

/** The settings of requests, which the kind of sites does not publish. */
export const siteRequestsRestorer: SettingsRestorer = {
  kind: SITE_REQUESTS_KIND,
  locks: 'site',
  async save(sql, _clusterId, id, settings, now) {
    const before = (await siteById(sql, id))!;
    const content = { ...before, contentSettings: { ...before.contentSettings, ...(settings as RequestSettings) } };
    await updateSite(sql, id, content, nextUpdatedAt(before.updatedAt, now));
  },
};

/** The content with settings that may lack some of the content settings, which stay. */
function withSettings<S extends SiteContent>(before: S, settings: SiteContent): S {
  const contentSettings = { ...before.contentSettings, ...settings.contentSettings };
  return { ...before, ...settings, contentSettings };
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
