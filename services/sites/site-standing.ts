import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { siteStanding } from '../../contract/resources/site-standing.ts';
import { lastAuditOf } from '../../models/audit/audit-log.ts';
import { siteFigures } from '../../models/security/site-level.ts';
import { readSiteProtection } from '../../models/security/site-protection.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { presentFigures } from './list-sites.ts';

/** Throws SITE_NOT_FOUND. */
export async function standingOf(
  { pools }: Runtime,
  { id }: Input<typeof siteStanding.standing>,
): Promise<Output<typeof siteStanding.standing>> {
  const sql = pools.api;
  const site = (await readSiteProtection(sql, id)) ?? fail('SITE_NOT_FOUND');
  const [figures, change] = await Promise.all([siteFigures(sql, [site]), lastAuditOf(sql, { type: 'site', id })]);
  const ofSite = site.settings.underAttack ? 'site' : null;
  return {
    ...presentFigures(figures.get(id)),
    underAttack: site.platform.underAttack ? 'platform' : ofSite,
    lastChange: change
      ? {
          at: change.occurred_at.toISOString(),
          action: change.action,
          actorType: change.actor_type,
          actorName: change.actor_name,
        }
      : null,
  };
}
