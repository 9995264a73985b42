// What of cache rules refers to an IP list: rules as they are saved, and rules that some nodes still run, because a canary
// is on or an earlier revision was put back.
import type { Knex } from 'knex';
import type { IpListUser, IpListUsers } from '../rules/ip-list-user.ts';

interface Row {
  id: string;
  name: string;
  /** Null: the rule is live and saved no more. */
  priority: number | null;
}

const USERS = `
  select site_id, priority from cache_rule_ip_list where ip_list_id = :list
  union all
  select distinct e.resource_id, null::smallint from config_entry e
   where e.to_revision is null and e.kind = 'site-cache' and e.refs @> array['list:' || :list]
     and not exists (select from cache_rule_ip_list u where u.ip_list_id = :list and u.site_id = e.resource_id)`;

export const cacheListUsers: IpListUsers = {
  async count(sql: Knex, ipListId: string) {
    const { rows } = await sql.raw<{ rows: { total: number }[] }>(`select count(*)::int as total from (${USERS}) u`, {
      list: ipListId,
    });
    return rows[0]!.total;
  },
  async page(sql: Knex, ipListId: string, limit: number, offset: number): Promise<IpListUser[]> {
    const { rows } = await sql.raw<{ rows: Row[] }>(
      `select u.site_id as id, coalesce(l.name, u.site_id) as name, u.priority
         from (${USERS} order by 1, 2 limit :limit offset :offset) u left join site_label l on l.site_id = u.site_id
        order by 1, 3`,
      { list: ipListId, limit, offset },
    );
    return rows.map(({ id, name, priority }) => ({
      kind: 'cache_rule',
      id,
      name: priority === null ? name : `${name}: ${priority}`,
      site: { id, name },
    }));
  },
};
