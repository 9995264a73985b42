// Sites by delivery, without looking at each: nodes that run the newest revision serve everything, so only what was
// published since the one most behind is counted.
import type { Knex } from 'knex';
import { DISABLED_REF } from './delivery.ts';
import type { ClusterSpan } from './overview-nodes.ts';

export interface SiteStates {
  live: number;
  partial: number;
  pending: number;
  disabled: number;
}

// `since(revision)`: enabled sites whose latest version is newer than that.
const since = (revision: string) => `(
  select count(*) from config_entry e where e.cluster_id = c.id and e.from_revision > ${revision} and e.kind = 'site'
    and e.track = 'S' and e.to_revision is null and e.blob_hash is not null and '${DISABLED_REF}' <> all(e.refs))`;

const COUNTS = `
  with site_count as (
    select cluster_id, count(*) filter (where enabled) as enabled, count(*) filter (where not enabled) as disabled
      from site group by cluster_id)
  select n.disabled::int, n.enabled::int,
      (case when c.least < 0 then n.enabled else ${since('c.least')} end)::int as "behindLeast",
      -- A new version of a site that nodes serve in an older one is not counted among those that nobody serves.
      (case when c.most is null or c.most < 0 then n.enabled else (
        select count(*) from config_entry e where e.cluster_id = c.id and e.from_revision > c.most and e.kind = 'site'
          and e.track = 'S' and e.to_revision is null and e.blob_hash is not null and '${DISABLED_REF}' <> all(e.refs)
          and not exists (select from config_entry o where o.cluster_id = e.cluster_id and o.resource_id = e.resource_id
            and o.kind = 'site' and o.track = 'S' and o.blob_hash is not null and o.from_revision <= c.most
            and o.to_revision > c.least and '${DISABLED_REF}' <> all(o.refs))) end)::int as "unserved",
      (select count(*) from site f where f.cluster_id = c.id and f.enabled and f.id = any(c.failed)
        and not exists (select from config_entry e where e.cluster_id = c.id and e.kind = 'site' and e.track = 'S'
          and e.resource_id = f.id and e.to_revision is null and e.from_revision > c.least))::int as failed,
      c.healthy
    from (select id, least, most, healthy, array(select jsonb_array_elements_text(failed)) as failed
      from jsonb_to_recordset(?::jsonb) as s(id text, least bigint, most bigint, healthy boolean, failed jsonb)) c
    join site_count n on n.cluster_id = c.id`;

interface CountRow {
  disabled: number;
  enabled: number;
  behindLeast: number;
  unserved: number;
  failed: number;
  healthy: boolean;
}

export async function siteStates(sql: Knex, spans: readonly ClusterSpan[]): Promise<SiteStates> {
  const { rows } = await sql.raw<{ rows: CountRow[] }>(COUNTS, [
    JSON.stringify(
      spans.map(({ clusterId, least, most, allHealthy, failedSites }) => ({
        id: clusterId,
        least: least ?? -1,
        most,
        healthy: allHealthy,
        failed: failedSites,
      })),
    ),
  ]);
  const total: SiteStates = { live: 0, partial: 0, pending: 0, disabled: 0 };
  for (const { disabled, enabled, behindLeast, unserved, failed, healthy } of rows) {
    const live = healthy ? enabled - behindLeast - failed : 0;
    total.disabled += disabled;
    total.pending += unserved;
    total.live += live;
    total.partial += enabled - unserved - live;
  }
  return total;
}
