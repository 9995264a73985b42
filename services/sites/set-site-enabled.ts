import { fail } from '../../contract/errors.ts';
import type { Input } from '../../contract/procedure.ts';
import type { sites } from '../../contract/resources/sites.ts';
import { assertCapabilities } from '../../models/config/required-capabilities.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { lockSite, setSiteEnabled as saveEnabled } from '../../models/sites/site.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';
import { featuresWith, knownSite, publishSite, type SiteChange, unchanged } from './publish-site.ts';

/**
 * Moves a site between enabled and disabled:
 *
 * | State    | Wanted   | Next      | Written                                          |
 * |----------|----------|-----------|--------------------------------------------------|
 * | enabled  | disabled | disabled  | revision site_disabled, audit site.disable       |
 * | disabled | enabled  | enabled   | revision site_enabled, audit site.enable         |
 * | either   | the same | unchanged | nothing; expectedUpdatedAt is not even looked at |
 *
 * Throws SITE_NOT_FOUND, UPDATED_AT_MISMATCH, NODE_CAPABILITY_REQUIRED.
 */
export async function setSiteEnabled(
  runtime: Runtime,
  input: Input<typeof sites.setEnabled>,
  call: Call,
): Promise<SiteChange> {
  const known = (await knownSite(runtime, input.id)) ?? fail('SITE_NOT_FOUND');
  const { clusterId } = known;
  return write(runtime, call, { clusterId }, async (tx) => {
    const site = (await lockSite(tx.sql, input.id)) ?? fail('SITE_NOT_FOUND');
    if (site.enabled === input.enabled) return unchanged(site, known);
    assertUpdatedAt(input.expectedUpdatedAt, site.updatedAt);
    // Off must work for everybody, whatever nodes lack.
    if (input.enabled) await assertCapabilities(tx, clusterId, await featuresWith(tx, { ...site, enabled: true }));
    const updatedAt = nextUpdatedAt(site.updatedAt, tx.now);
    await saveEnabled(tx.sql, site.id, input.enabled, updatedAt);
    const { enabled } = input;
    const change = enabled
      ? { reason: 'site_enabled', action: 'site.enable' }
      : { reason: 'site_disabled', action: 'site.disable' };
    return publishSite(tx, { ...site, enabled, updatedAt }, change, known);
  });
}
