// Saves how a site challenges its visitors as an earlier revision had it.
import type { ProtectionOfSite } from '../../contract/resources/protection.ts';
import type { SettingsRestorer } from '../../mixins/settings-restorer.ts';
import { nextUpdatedAt } from '../../models/db/updated-at.ts';
import { PROTECTION_KIND } from '../../models/security/protection.entry.ts';
import { readSiteProtection, writeSiteProtection } from '../../models/security/site-protection.ts';

export const protectionRestorer: SettingsRestorer = {
  kind: PROTECTION_KIND,
  locks: 'site',
  async save(sql, clusterId, id, settings, now) {
    const { updatedAt } = (await readSiteProtection(sql, id))!;
    const after = { settings: settings as ProtectionOfSite, updatedAt: nextUpdatedAt(updatedAt, now) };
    await writeSiteProtection(sql, { id, clusterId }, after);
  },
};
