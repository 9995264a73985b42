// How requests of a site are inspected, read and changed.
import { isDeepStrictEqual } from 'node:util';
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { siteWaf, WafOfSite } from '../../contract/resources/site-waf.ts';
import { publish } from '../../models/config/publish.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { clusterOfSite, lockSite } from '../../models/sites/site.ts';
import { compileWaf, SITE_WAF_KIND } from '../../models/waf/site-waf.entry.ts';
import { readSiteWaf, type SiteWaf, writeSiteWaf } from '../../models/waf/site-waf.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';
import { givenWaf } from './given-waf.ts';

type State = Output<typeof siteWaf.get>;

/** Exclusions of which the audit tells what they were; of more it tells how many. */
const TOLD_EXCLUSIONS = 20;

/** Throws SITE_NOT_FOUND. */
export async function getSiteWaf({ pools }: Runtime, { id }: Input<typeof siteWaf.get>): Promise<State> {
  return present(id, (await readSiteWaf(pools.api, id)) ?? fail('SITE_NOT_FOUND'));
}

/** Merges the given fields; what equals the saved settings is not saved again. Publishes what nodes run differently. Throws the contract's errors. */
export async function updateSiteWaf(
  runtime: Runtime,
  input: Input<typeof siteWaf.update>,
  call: Call,
): Promise<Output<typeof siteWaf.update>> {
  const { id, expectedUpdatedAt } = input;
  const clusterId = (await clusterOfSite(runtime.pools.api, id)) ?? fail('SITE_NOT_FOUND');
  return write(runtime, call, { clusterId }, async (tx) => {
    const { name } = (await lockSite(tx.sql, id)) ?? fail('SITE_NOT_FOUND');
    const before = (await readSiteWaf(tx.sql, id))!;
    assertUpdatedAt(expectedUpdatedAt, before.updatedAt);
    const settings = givenWaf(before.settings, input);
    const changed = changedFields(before.settings, settings);
    const again = changed.length === 0;
    const saved = { settings, updatedAt: nextUpdatedAt(before.updatedAt, tx.now) };
    if (!again) await writeSiteWaf(tx.sql, { id, clusterId }, saved);
    const revision = await publish(tx, {
      clusterId,
      entries: [{ kind: SITE_WAF_KIND, id, compiled: compileWaf(settings) }],
      reason: 'site_waf_updated',
      params: { site: name, siteId: id, changed },
      audit: {
        action: 'site.waf_update',
        target: { type: 'site', id, name },
        metadata: { changed, ...told(before.settings, settings, changed) },
      },
      again,
    });
    return { ...present(id, again ? before : saved), revision };
  });
}

function changedFields(before: WafOfSite, after: WafOfSite): (keyof WafOfSite)[] {
  const fields = Object.keys(after) as (keyof WafOfSite)[];
  return fields.filter((field) => !isDeepStrictEqual(before[field], after[field]));
}

/** What the audit tells of the fields; of exclusions those that came and went. */
function told(before: WafOfSite, after: WafOfSite, changed: readonly (keyof WafOfSite)[]): Record<string, unknown> {
  const plain = changed.filter((field) => field !== 'exclusions');
  const of = (settings: WafOfSite) => Object.fromEntries(plain.map((field) => [field, settings[field]]));
  const beyond = (some: WafOfSite, others: WafOfSite) => {
    const known = new Set(others.exclusions.map((one) => JSON.stringify(one)));
    const found = some.exclusions.filter((one) => !known.has(JSON.stringify(one)));
    return found.length > TOLD_EXCLUSIONS ? found.length : found;
  };
  return {
    before: of(before),
    after: of(after),
    ...(changed.includes('exclusions') ? { added: beyond(after, before), removed: beyond(before, after) } : {}),
  };
}

function present(siteId: string, { settings, updatedAt }: SiteWaf): State {
  return { siteId, ...settings, updatedAt: updatedAt?.toISOString() ?? null };
}
