// What a revision is about: a site, an IP list, or the cluster itself. Names are those of then, for they outlive the thing;
// whether it still exists is looked up, once for all revisions of an answer.
import type { Knex } from 'knex';

export interface RevisionSubject {
  type: 'site' | 'ip_list' | 'cluster';
  id: string | null;
  name: string;
  /** Whether there is a page to go to. */
  exists: boolean;
}

export interface AboutRevision {
  clusterId: string;
  clusterName: string;
  reason: string;
  params: Record<string, unknown>;
}

/** Reasons that concern the cluster and no more. */
const OF_CLUSTER = new Set([
  'cluster_created',
  'client_ip_updated',
  'unknown_hosts_updated',
  'header_limit_updated',
  'challenge_keys_rotated',
  'rollback',
]);

/** The subject of each revision, in their order; null for settings of the whole installation. */
export async function subjectsOf(sql: Knex, revisions: readonly AboutRevision[]): Promise<(RevisionSubject | null)[]> {
  const subjects = revisions.map(subjectOf);
  const ids = (type: RevisionSubject['type']) => [
    ...new Set(subjects.flatMap((one) => (one?.type === type && one.id !== null ? [one.id] : []))),
  ];
  const [sites, lists] = [ids('site'), ids('ip_list')];
  if (sites.length + lists.length === 0) return subjects;
  const { rows } = await sql.raw<{ rows: { id: string }[] }>(
    'select id from site where id = any(?) union all select id from ip_list where id = any(?)',
    [sites as never, lists as never],
  );
  const there = new Set(rows.map(({ id }) => id));
  return subjects.map((one) => one && { ...one, exists: one.type === 'cluster' || there.has(one.id ?? '') });
}

function subjectOf({ clusterId, clusterName, reason, params }: AboutRevision): RevisionSubject | null {
  const { site, siteId, ipList, ipListId } = params;
  const text = (value: unknown) => (typeof value === 'string' ? value : null);
  if (typeof site === 'string') return { type: 'site', id: text(siteId), name: site, exists: false };
  if (typeof ipList === 'string') return { type: 'ip_list', id: text(ipListId), name: ipList, exists: false };
  return OF_CLUSTER.has(reason) ? { type: 'cluster', id: clusterId, name: clusterName, exists: true } : null;
}

/** What entries belong to, by their owners, in the same order; null: the cluster itself. */
export async function ownedSubjects(
  sql: Knex,
  owners: readonly (string | null)[],
): Promise<(RevisionSubject | null)[]> {
  const { rows } = await sql.raw<{ rows: { owner: string; name: string; exists: boolean }[] }>(
    `select o.owner, coalesce(l.name, i.name, '') as name, s.id is not null or i.id is not null as exists
       from unnest(?::text[]) as o(owner)
       left join site_label l on l.site_id = substring(o.owner from '^site:(.*)')
       left join site s on s.id = substring(o.owner from '^site:(.*)')
       left join ip_list i on i.id = substring(o.owner from '^list:(.*)')`,
    [[...new Set(owners)].filter((owner) => owner !== null) as never],
  );
  const known = new Map(rows.map(({ owner, ...row }) => [owner, row]));
  return owners.map((owner) => {
    if (owner === null) return null;
    const [word, id] = owner.split(':') as [string, string];
    const { name, exists } = known.get(owner)!;
    return { type: word === 'site' ? 'site' : 'ip_list', id, name: name || id, exists };
  });
}
