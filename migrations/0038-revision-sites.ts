// How many sites each revision serves: counted as it is published, so that a list of revisions counts none.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    alter table cluster_head add column site_count bigint not null default 0;
    alter table config_revision add column site_count bigint not null default 0;

    with moved as (
      select cluster_id, from_revision as revision, 1 as sites from config_entry
        where track = 'S' and kind = 'site' and not 'state:disabled' = any(refs)
      union all
      select cluster_id, to_revision, -1 from config_entry
        where track = 'S' and kind = 'site' and not 'state:disabled' = any(refs) and to_revision is not null
    ), summed as (
      select cluster_id, revision, sum(sum(sites)) over (partition by cluster_id order by revision) as sites
        from moved group by cluster_id, revision
    ), filled as (
      update config_revision r set site_count = coalesce((
        select s.sites from summed s where s.cluster_id = r.cluster_id and s.revision <= r.number
          order by s.revision desc limit 1), 0)
    )
    update cluster_head h set site_count = coalesce((
      select s.sites from summed s where s.cluster_id = h.cluster_id order by s.revision desc limit 1), 0);
  `);
}
