// Stored rules that an earlier version of the console compiled are compiled by this one and published. A rule that does not
// compile any more keeps its last form at the nodes, and the overview names it.
import { errorCodeOf } from '../../contract/errors.ts';
import { publish } from '../../models/config/publish.ts';
import { requestPublication } from '../../models/config/publish-requests.ts';
import { assertCapabilities } from '../../models/config/required-capabilities.ts';
import { PLATFORM_RULES_KIND } from '../../models/rules/platform-rules.entry.ts';
import { lockPlatformRules, PLATFORM, recompileRuleSet, staleRuleSets } from '../../models/rules/rule-set.ts';
import { SITE_RULES_KIND } from '../../models/rules/site-rules.entry.ts';
import { lockSite } from '../../models/sites/site.ts';
import { publishRequested } from '../../pipeline/publish-requested.ts';
import { systemCall } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

const BATCH = 200;

/** One rule set that cannot be compiled or published stops no other; the next run tries it again. */
export async function recompileStored(runtime: Runtime, signal: AbortSignal): Promise<void> {
  for (let after: string | null = null; !signal.aborted; ) {
    const stale = await staleRuleSets(runtime.pools.api, after, BATCH);
    for (const { id, clusterId } of stale) {
      if (signal.aborted) return;
      const work = clusterId === null ? recompilePlatform(runtime) : recompileSite(runtime, id, clusterId);
      await work.catch((err: unknown) => {
        runtime.log.warn({ err, code: errorCodeOf(err), ruleSet: id }, 'stored rules were not recompiled');
      });
    }
    if (stale.length < BATCH) return;
    after = stale.at(-1)!.id;
  }
}

async function recompileSite(runtime: Runtime, id: string, clusterId: string): Promise<void> {
  await write(runtime, systemCall('rules'), { clusterId }, async (tx) => {
    const site = await lockSite(tx.sql, id);
    if (!site) return;
    const compiled = await recompileRuleSet(tx.sql, id);
    if (compiled === undefined) return;
    await assertCapabilities(tx, clusterId, compiled?.features ?? []);
    await publish(tx, {
      clusterId,
      entries: [{ kind: SITE_RULES_KIND, id, compiled }],
      reason: 'rules_updated',
      params: { site: site.name, siteId: id },
    });
  });
}

async function recompilePlatform(runtime: Runtime): Promise<void> {
  const call = systemCall('rules');
  const clusterIds = await write(runtime, call, {}, async (tx) => {
    await lockPlatformRules(tx.sql);
    if ((await recompileRuleSet(tx.sql, PLATFORM)) === undefined) return [];
    return requestPublication(tx, {
      entries: [{ kind: PLATFORM_RULES_KIND, id: PLATFORM }],
      reason: 'rules_updated',
    });
  });
  await publishRequested(runtime, call, clusterIds);
}
