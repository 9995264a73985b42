// What of rules refers to an IP list: rules as they are saved, and rules that some nodes still run, because a canary is on
// or an earlier revision was put back. Without the list those would fail.
import type { Knex } from 'knex';
import type { IpListUser, IpListUsers } from './ip-list-user.ts';

interface SavedRow {
  id: string;
  name: string;
  siteId: string | null;
  siteName: string | null;
}

interface LiveRow {
  clusterId: string;
  clusterName: string;
  siteId: string;
  siteName: string;
}

const LIVE = `
  select distinct e.cluster_id, e.resource_id from config_entry e
   where e.to_revision is null and e.kind in ('site-rules', 'platform-rules') and e.refs @> array['list:' || :list]
     and not exists (select from rule_ip_list u where u.ip_list_id = :list and u.rule_set_id = e.resource_id)`;

/** Rules of the platform first, then those of sites; after them what is live and saved no more. */
export const ruleListUsers: IpListUsers = {
  async count(sql, ipListId) {
    const { rows } = await sql.raw<{ rows: { live: number }[] }>(`select count(*)::int as live from (${LIVE}) live`, {
      list: ipListId,
    });
    return (await savedCount(sql, ipListId)) + rows[0]!.live;
  },
  async page(sql, ipListId, limit, offset) {
    const saved = await savedPage(sql, ipListId, limit, offset);
    if (saved.length === limit) return saved;
    const skipped = Math.max(0, offset - (await savedCount(sql, ipListId)));
    return [...saved, ...(await livePage(sql, ipListId, limit - saved.length, skipped))];
  },
};

async function savedCount(sql: Knex, ipListId: string): Promise<number> {
  const { rows } = await sql.raw<{ rows: { count: number }[] }>(
    'select count(*)::int as count from rule_ip_list where ip_list_id = ?',
    [ipListId],
  );
  return rows[0]!.count;
}

async function savedPage(sql: Knex, ipListId: string, limit: number, offset: number): Promise<IpListUser[]> {
  const { rows } = await sql.raw<{ rows: SavedRow[] }>(
    `select u.rule_id as id, u.name, s.id as "siteId", s.name as "siteName"
       from (select * from rule_ip_list where ip_list_id = ? order by rule_set_id, position limit ? offset ?) u
       left join site s on s.id = u.rule_set_id order by u.rule_set_id, u.position`,
    [ipListId, limit, offset],
  );
  return rows.map(({ id, name, siteId, siteName }) =>
    siteId === null
      ? { kind: 'platform_rule', id, name, site: null }
      : { kind: 'site_rule', id, name, site: { id: siteId, name: siteName! } },
  );
}

async function livePage(sql: Knex, ipListId: string, limit: number, offset: number): Promise<IpListUser[]> {
  const { rows } = await sql.raw<{ rows: LiveRow[] }>(
    `select live.cluster_id as "clusterId", c.name as "clusterName", live.resource_id as "siteId",
            coalesce(l.name, live.resource_id) as "siteName"
       from (${LIVE} order by 1, 2 limit :limit offset :offset) live
       join cluster c on c.id = live.cluster_id left join site_label l on l.site_id = live.resource_id order by 1, 3`,
    { list: ipListId, limit, offset },
  );
  return rows.map(({ clusterId, clusterName, siteId, siteName }) =>
    siteId === ''
      ? { kind: 'platform_rule', id: clusterId, name: clusterName, site: null }
      : { kind: 'site_rule', id: siteId, name: siteName, site: { id: siteId, name: siteName } },
  );
}
