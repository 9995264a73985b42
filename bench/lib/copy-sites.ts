// Many sites in a cluster, quickly: copies of one the action made, every one of them published.
import { setTimeout as sleep } from 'node:timers/promises';
import { errorCodeOf } from '../../contract/errors.ts';
import { publish } from '../../models/config/publish.ts';
import { systemCall } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

const BATCH = 500;

/** Copies a site `count` times, each with a domain of its own; answers the ids. */
export async function copySites(runtime: Runtime, clusterId: string, siteId: string, count: number): Promise<string[]> {
  const siteIds: string[] = [];
  while (siteIds.length < count) {
    const { rows } = await runtime.pools.api.raw<{ rows: { id: string }[] }>(
      `with copy as (
         insert into site (cluster_id, name, enabled, origins, origin_settings, content_settings, ports, search_text)
         select cluster_id, 'site ' || n, enabled, origins, origin_settings, content_settings, ports, 'site ' || n
         from site, generate_series(1, ?::int) n where id = ? returning id
       ), origin as (
         insert into site_origin_address (site_id, address)
         select copy.id, o.address from copy, site_origin_address o where o.site_id = ?
       )
       insert into site_domain (site_id, position, form, name) select id, 0, 'exact', id || '.example' from copy
       returning site_id as id`,
      [Math.min(BATCH, count - siteIds.length), siteId, siteId],
    );
    const ids = rows.map((row) => row.id);
    const entries = ids.map((id) => ({ kind: 'site', id }));
    await patiently(() =>
      write(runtime, systemCall('bench'), { clusterId }, (tx) => publish(tx, { clusterId, entries, reason: 'bench' })),
    );
    siteIds.push(...ids);
  }
  return siteIds;
}

/** A busy machine answers 503 now and then; filling is not what is measured. */
async function patiently(work: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await work();
      return;
    } catch (error) {
      if (errorCodeOf(error) !== 'SERVICE_UNAVAILABLE' || attempt === 5) throw error;
      await sleep(1000);
    }
  }
}
