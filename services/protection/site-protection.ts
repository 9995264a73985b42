import { isDeepStrictEqual } from 'node:util';
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { ProtectionOfSite, protection } from '../../contract/resources/protection.ts';
import { recordAudit } from '../../models/audit-entry.ts';
import { CC_TEMPLATE_KIND } from '../../models/entries/cc-template.ts';
import { featuresOfProtection, PROTECTION_KIND } from '../../models/entries/protection.ts';
import { CC_TEMPLATE, readCcTemplate, readProtectionSettings } from '../../models/protection-setting.ts';
import { publish } from '../../models/publish.ts';
import { assertCapabilities } from '../../models/required-capabilities.ts';
import { shareSetting } from '../../models/setting.ts';
import { clusterOfSite, lockSite } from '../../models/site.ts';
import { readSiteProtection, type SiteProtectionRow, writeSiteProtection } from '../../models/site-protection.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/updated-at.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Tx, write } from '../../runtime/write.ts';

type Protection = Output<typeof protection.get>;
type Change = Input<typeof protection.update>;
type Sql = Runtime['pools']['api'];

/** Throws SITE_NOT_FOUND. */
export async function getProtection({ pools }: Runtime, { id }: Input<typeof protection.get>): Promise<Protection> {
  const row = (await readSiteProtection(pools.api, id)) ?? fail('SITE_NOT_FOUND');
  return present(pools.api, id, row);
}

/** Merges the given fields; what equals the saved settings writes and publishes nothing. Throws the contract's errors. */
export async function updateProtection(runtime: Runtime, input: Change, call: Call): Promise<Protection> {
  const clusterId = (await clusterOfSite(runtime.pools.api, input.id)) ?? fail('SITE_NOT_FOUND');
  return write(runtime, call, { clusterId }, async (tx) => {
    const site = (await lockSite(tx.sql, input.id)) ?? fail('SITE_NOT_FOUND');
    const before = (await readSiteProtection(tx.sql, site.id))!;
    assertUpdatedAt(input.expectedUpdatedAt, before.updatedAt);
    const settings = merge(before.settings, input);
    const changed = changedFields(before.settings, settings);
    if (changed.length === 0) return present(tx.sql, site.id, before);
    await assertCapabilities(tx, clusterId, featuresOfProtection(settings));
    const after = { settings, updatedAt: nextUpdatedAt(before.updatedAt, tx.now) };
    await writeSiteProtection(tx.sql, site, settings, after.updatedAt);
    await recordAudit(
      tx,
      'site.protection_update',
      { type: 'site', id: site.id, name: site.name },
      { changed, before: before.settings, after: settings },
    );
    await publishProtection(tx, site, follows(before.settings) !== follows(settings));
    return present(tx.sql, site.id, after);
  });
}

async function publishProtection(
  tx: Tx,
  site: { id: string; clusterId: string; name: string },
  followingChanged: boolean,
): Promise<void> {
  // Whoever changes the template sees this follower, or this sees the changed template.
  if (followingChanged) await shareSetting(tx.sql, CC_TEMPLATE);
  await publish(tx, {
    clusterId: site.clusterId,
    entries: [
      { kind: PROTECTION_KIND, id: site.id },
      ...(followingChanged ? [{ kind: CC_TEMPLATE_KIND, id: '' }] : []),
    ],
    reason: 'site_protection_updated',
    params: { site: site.name, siteId: site.id },
  });
}

/** The settings with the given fields. Throws PROTECTION_POW_DIFFICULTY. */
export function merge(before: ProtectionOfSite, change: Change): ProtectionOfSite {
  const { id: _id, expectedUpdatedAt: _expected, cc, ...fields } = change;
  const after = { ...before, ...fields, cc: { ...before.cc, ...cc } };
  if (after.powHighDifficulty < after.powDifficulty) fail('PROTECTION_POW_DIFFICULTY', { min: after.powDifficulty });
  return after;
}

function changedFields(before: ProtectionOfSite, after: ProtectionOfSite): string[] {
  const fields = Object.keys(after) as (keyof ProtectionOfSite)[];
  return fields.filter((field) => !isDeepStrictEqual(before[field], after[field]));
}

function follows({ cc }: ProtectionOfSite): boolean {
  return cc.enabled && cc.followTemplate;
}

async function present(sql: Sql, siteId: string, { settings, updatedAt }: SiteProtectionRow): Promise<Protection> {
  const [ccTemplate, platform] = [await readCcTemplate(sql), await readProtectionSettings(sql)];
  const { enabled, followTemplate, ...own } = settings.cc;
  const effectiveCc = followTemplate ? ccTemplate : own;
  return {
    siteId,
    ...settings,
    ccTemplate,
    effectiveCc: enabled ? effectiveCc : null,
    platformUnderAttack: platform.underAttack,
    updatedAt: updatedAt.toISOString(),
  };
}
