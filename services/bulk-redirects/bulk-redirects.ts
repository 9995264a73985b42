// The bulk redirects of a site, read and saved as a whole. Redirects of a domain that the site loses stay where they are:
// nobody comes to them, and they work again with the domain. The next save has to do without them.
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { bulkRedirects } from '../../contract/resources/bulk-redirects.ts';
import { formatRedirectSource, sourceOfKey } from '../../contract/scalars/redirect-source.ts';
import { publish } from '../../models/config/publish.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import {
  type BulkRedirectRow,
  bulkRedirectsOf,
  bulkRedirectsUpdatedAt,
  EVERY_CHUNK,
  placed,
  replaceBulkRedirects,
  touchBulkRedirects,
} from '../../models/sites/bulk-redirect.ts';
import { compileChunks } from '../../models/sites/bulk-redirects.entry.ts';
import { clusterOfSite, lockSite, siteById } from '../../models/sites/site.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';
import { assertHostsKnown, givenRedirects } from './given-redirects.ts';
import type { RedirectedSite } from './redirect-loops.ts';
import { redirectWarnings } from './redirect-warnings.ts';

type Redirects = Output<typeof bulkRedirects.get>;
type Saved = Output<typeof bulkRedirects.set>;

/** Throws SITE_NOT_FOUND. */
export async function getBulkRedirects(
  { pools }: Runtime,
  { id }: Input<typeof bulkRedirects.get>,
): Promise<Redirects> {
  // In this order: an answer may have a time that is older than its redirects, and a save that expects it is refused.
  const updatedAt = (await bulkRedirectsUpdatedAt(pools.api, id)) ?? fail('SITE_NOT_FOUND');
  const [rows, site] = await Promise.all([bulkRedirectsOf(pools.api, id), siteById(pools.api, id)]);
  return present(id, rows, updatedAt, site ?? fail('SITE_NOT_FOUND'));
}

/** Saves all redirects and publishes the chunks that differ; equal ones are not saved again, and all are compared. Throws the contract's errors. */
export async function setBulkRedirects(
  runtime: Runtime,
  { id, redirects, expectedUpdatedAt }: Input<typeof bulkRedirects.set>,
  call: Call,
): Promise<Saved> {
  const { rows, hosts, fragments } = givenRedirects(redirects);
  const inChunks = placed(rows);
  const clusterId = (await clusterOfSite(runtime.pools.api, id)) ?? fail('SITE_NOT_FOUND');
  return write(runtime, call, { clusterId }, async (tx) => {
    const site = (await lockSite(tx.sql, id)) ?? fail('SITE_NOT_FOUND');
    const before = (await bulkRedirectsUpdatedAt(tx.sql, id))!;
    assertUpdatedAt(expectedUpdatedAt, before);
    assertHostsKnown(hosts, site.domains);
    const { chunks, ...counts } = await replaceBulkRedirects(tx.sql, id, inChunks);
    const again = chunks.length === 0;
    const updatedAt = again ? before : nextUpdatedAt(before, tx.now);
    if (!again) await touchBulkRedirects(tx.sql, id, updatedAt);
    const revision = await publish(tx, {
      clusterId,
      entries: compileChunks(id, inChunks, again ? EVERY_CHUNK : chunks),
      reason: 'rules_updated',
      params: { site: site.name, siteId: id, changed: ['bulkRedirects'] },
      audit: {
        action: 'site.bulk_redirects_update',
        target: { type: 'site', id, name: site.name },
        metadata: { entries: rows.length, ...counts },
      },
      again,
    });
    return { ...present(id, rows, updatedAt, site, fragments), revision };
  });
}

function present(
  siteId: string,
  rows: readonly BulkRedirectRow[],
  updatedAt: Date,
  site: RedirectedSite,
  fragments: readonly string[] = [],
): Redirects {
  const redirects = rows.map((row) => ({ ...row, source: formatRedirectSource(sourceOfKey(row.source)) }));
  return {
    siteId,
    redirects,
    updatedAt: updatedAt.toISOString(),
    warnings: redirectWarnings(rows, site, fragments),
  };
}
