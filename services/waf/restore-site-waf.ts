// Saves how requests of a site are inspected as an earlier revision had it. Of one that did not have them inspected nodes
// know nothing else: then the rest stays as it is.
import type { WafOfSite } from '../../contract/resources/site-waf.ts';
import type { SettingsRestorer } from '../../mixins/settings-restorer.ts';
import { nextUpdatedAt } from '../../models/db/updated-at.ts';
import { SITE_WAF_KIND } from '../../models/waf/site-waf.entry.ts';
import { readSiteWaf, writeSiteWaf } from '../../models/waf/site-waf.ts';

export const wafRestorer: SettingsRestorer = {
  kind: SITE_WAF_KIND,
  locks: 'site',
  async save(sql, clusterId, id, settings, now) {
    const then = settings as WafOfSite;
    const before = (await readSiteWaf(sql, id))!;
    const after = then.mode === 'off' ? { ...before.settings, mode: then.mode } : then;
    await writeSiteWaf(sql, { id, clusterId }, { settings: after, updatedAt: nextUpdatedAt(before.updatedAt, now) });
  },
};
