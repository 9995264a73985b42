import { isDeepStrictEqual } from 'node:util';
import { fail } from '../../contract/errors.ts';
import type { Input } from '../../contract/procedure.ts';
import type { sites } from '../../contract/resources/sites.ts';
import type { Domain } from '../../contract/scalars/domain.ts';
import { givenCache } from '../../models/cache/given-cache.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import { readOriginAllowList } from '../../models/sites/origin-allow-list.ts';
import type { SiteRow } from '../../models/sites/site.ts';
import { lockSite, type SiteContent, updateSite as saveSite } from '../../models/sites/site.ts';
import { readSiteHttps } from '../../models/sites/site-https.ts';
import { keepListenPorts } from '../../models/sites/site-ports.ts';
import { readStoredParts } from '../../models/sites/stored-parts.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Tx } from '../../runtime/write.ts';
import { write } from '../../runtime/write.ts';
import { assignDomains } from './assign-domains.ts';
import { assertGroupsUnused } from './origin-groups.ts';
import { assertOriginsAllowed } from './origin-policy.ts';
import { knownSite, publishSite, type SiteChange } from './publish-site.ts';
import { saveCache } from './site-cache.ts';
import { followDomains } from './site-certificates.ts';
import { changedContent } from './site-content.ts';
import { assertPorts } from './site-ports.ts';
import { assertRulesCompile } from './stored-rules.ts';

const PARTS = ['name', 'domains', 'origins', 'originSettings', 'contentSettings', 'ports'] as const;

/** Changes the given parts; what equals the saved site is not saved again. Publishes what nodes run differently. Throws the contract's errors. */
export async function updateSite(runtime: Runtime, input: Input<typeof sites.update>, call: Call): Promise<SiteChange> {
  const known = (await knownSite(runtime, input.id)) ?? fail('SITE_NOT_FOUND');
  const { clusterId } = known;
  return write(runtime, call, { clusterId }, async (tx) => {
    const offered = input.ports && ((await keepListenPorts(tx.sql, clusterId)) ?? fail('SITE_NOT_FOUND'));
    const before = (await lockSite(tx.sql, input.id)) ?? fail('SITE_NOT_FOUND');
    assertUpdatedAt(input.expectedUpdatedAt, before.updatedAt);
    const content: SiteContent = changedContent(before, input);
    // Saved origins stay when the allow list shrinks; nodes refuse their addresses. Given ones are judged anew.
    if (input.origins) assertOriginsAllowed(content.origins, await readOriginAllowList(tx.sql));
    if (input.origins) await assertGroupsUnused(tx.sql, before, content);
    const stored = await readStoredParts(tx.sql, before.id);
    await assertRulesCompile(tx.sql, stored);
    if (offered) assertPorts(content.ports, offered, (await readSiteHttps(tx.sql, before.id))!.https);
    const { changed: changedCache, ...cache } = await saveCache(tx, runtime.sealer, before, givenCache(before, input));
    const changed = [...PARTS.filter((part) => !isDeepStrictEqual(before[part], content[part])), ...changedCache];
    const named = {
      reason: 'site_updated',
      action: 'site.update',
      metadata: { changed },
      ...(changedCache.length === 0 ? { stored } : {}),
    };
    if (changed.length === 0) return publishSite(tx, before, { ...named, again: true }, known);
    const updatedAt = nextUpdatedAt(before.updatedAt, tx.now);
    await saveSite(tx.sql, before.id, content, updatedAt);
    const { entries, reissue } = changed.includes('domains')
      ? await moveDomains(tx, before, content.domains)
      : { entries: [], reissue: null };
    const after = { ...before, ...content, ...cache, updatedAt };
    const answer = await publishSite(tx, after, { ...named, entries }, known);
    return reissue ? { ...answer, certificateReissue: reissue } : answer;
  });
}

async function moveDomains(tx: Tx, site: SiteRow, domains: readonly Domain[]): ReturnType<typeof followDomains> {
  await assignDomains(tx, site.id, domains);
  return followDomains(tx, site, domains);
}
