import { isDeepStrictEqual } from 'node:util';
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { ProtectionOfSite, protection } from '../../contract/resources/protection.ts';
import { publish } from '../../models/config/publish.ts';
import { assertCapabilities } from '../../models/config/required-capabilities.ts';
import { shareSetting } from '../../models/db/setting.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { CC_TEMPLATE_KIND } from '../../models/security/cc-template.entry.ts';
import {
  capabilitiesOfProtection,
  compileProtection,
  PROTECTION_KIND,
} from '../../models/security/protection.entry.ts';
import { CC_TEMPLATE } from '../../models/security/protection-setting.ts';
import {
  lockSiteProtection,
  readSiteProtection,
  type SiteProtectionView,
  writeSiteProtection,
} from '../../models/security/site-protection.ts';
import { clusterOfSite } from '../../models/sites/site.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Tx, write } from '../../runtime/write.ts';

type Protection = Output<typeof protection.get>;
type Change = Input<typeof protection.update>;

/** Throws SITE_NOT_FOUND. */
export async function getProtection({ pools }: Runtime, { id }: Input<typeof protection.get>): Promise<Protection> {
  return present((await readSiteProtection(pools.api, id)) ?? fail('SITE_NOT_FOUND'));
}

/** Merges the given fields; what equals the saved settings is not saved again. Publishes what nodes run differently. Throws the contract's errors. */
export async function updateProtection(runtime: Runtime, input: Change, call: Call): Promise<Protection> {
  const clusterId = (await clusterOfSite(runtime.pools.api, input.id)) ?? fail('SITE_NOT_FOUND');
  return write(runtime, call, { clusterId }, async (tx) => {
    const before = (await lockSiteProtection(tx.sql, input.id)) ?? fail('SITE_NOT_FOUND');
    assertUpdatedAt(input.expectedUpdatedAt, before.updatedAt);
    const settings = merge(before.settings, input);
    const changed = changedFields(before.settings, settings);
    const again = changed.length === 0;
    const after = again ? before : { ...before, settings, updatedAt: nextUpdatedAt(before.updatedAt, tx.now) };
    if (!again) {
      await assertCapabilities(tx, clusterId, capabilitiesOfProtection(settings));
      await writeSiteProtection(tx.sql, before, after);
    }
    await publishProtection(tx, after, before.settings, changed);
    return present(after);
  });
}

async function publishProtection(
  tx: Tx,
  { id, clusterId, name, settings }: SiteProtectionView,
  before: ProtectionOfSite,
  changed: readonly string[],
): Promise<void> {
  const again = changed.length === 0;
  const followingChanged = follows(before) !== follows(settings) || (again && follows(settings));
  // Whoever changes the template sees this follower, or this sees the changed template.
  if (followingChanged) await shareSetting(tx.sql, CC_TEMPLATE);
  await publish(tx, {
    clusterId,
    entries: [
      { kind: PROTECTION_KIND, id, compiled: compileProtection(settings) },
      ...(followingChanged ? [{ kind: CC_TEMPLATE_KIND, id: '' }] : []),
    ],
    reason: 'site_protection_updated',
    params: { site: name, siteId: id, changed },
    audit: {
      action: 'site.protection_update',
      target: { type: 'site', id, name },
      metadata: { changed, before, after: settings },
    },
    again,
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

function present({ id, settings, updatedAt, ccTemplate, platform }: SiteProtectionView): Protection {
  const { enabled, followTemplate, ...own } = settings.cc;
  const effectiveCc = followTemplate ? ccTemplate : own;
  return {
    siteId: id,
    ...settings,
    ccTemplate,
    effectiveCc: enabled ? effectiveCc : null,
    platformUnderAttack: platform.underAttack,
    updatedAt: updatedAt.toISOString(),
  };
}
