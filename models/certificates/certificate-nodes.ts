// Which nodes serve a certificate: by the entries that name it and by what nodes reported of them.
import type { Knex } from 'knex';
import type { CERTIFICATE_NODE_STATES } from '../../contract/resources/certificates.ts';
import { MAX_FAILED_ENTRIES, ONLINE_SECONDS } from '../nodes/node-state.ts';
import { certificateRef } from '../sites/site-https.entry.ts';

export interface CertificateNode {
  id: string;
  name: string;
  clusterId: string;
  state: (typeof CERTIFICATE_NODE_STATES)[number];
  /** Why it cannot use it, or what keeps the configuration with it; else empty. */
  message: string;
}

/** A text as nodes put it into quotes (Go's %q). */
function quoted(text: string): string {
  return JSON.stringify(text).replaceAll(/\p{C}|(?! )\p{Z}/gu, (character) => {
    const code = character.codePointAt(0)!;
    return code < 0x1_0000 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\U${code.toString(16).padStart(8, '0')}`;
  });
}

// An entry that names a certificate is written anew with each renewal: who runs the latest version has the latest one.
const NODES = `
  with named as materialized (
    select cluster_id, resource_id, track, from_revision, features from config_entry
     where to_revision is null and kind = 'site-https' and refs @> array[:ref]
  ), needs as materialized (
    select cluster_id, track, max(from_revision) as revision, array_agg(resource_id) as sites,
        (select coalesce(array_agg(distinct f), '{}') from named o cross join unnest(o.features) f
          where o.cluster_id = n.cluster_id) as features
      from named n group by cluster_id, track
  ), node_needs as (
    select n.id, n.name, n.cluster_id, max(d.revision) as revision, bool_or(not s.features @> d.features) as lacks
      from needs d join node n on n.cluster_id = d.cluster_id and n.status = 'active'
      left join node_state s on s.node_id = n.id
     where d.track = 'S' or s.track = 'C' group by n.id
  )`;

export async function certificateNodePage(
  sql: Knex,
  { id: certificateId, name: certificateName }: { id: string; name: string },
  limit: number,
  offset: number,
): Promise<{ items: CertificateNode[]; total: number }> {
  const ref = certificateRef(certificateId);
  const { rows } = await sql.raw<{ rows: (CertificateNode & { total: number })[] }>(
    `${NODES}
     select n.id, n.name, n.cluster_id as "clusterId", coalesce(f.reason, '') as message,
         count(*) over ()::int as total,
         case
           when s.last_seen_at is null or s.last_seen_at <= now() - make_interval(secs => ${ONLINE_SECONDS}) then 'offline'
           when f.own then 'failed'
           when n.lacks then 'unsupported'
           when f.reason is not null then 'pending'
           when s.epoch = h.epoch and s.revision >= n.revision then
             case when jsonb_array_length(s.failed) >= ${MAX_FAILED_ENTRIES} then 'unknown' else 'serving' end
           when s.epoch = h.epoch and exists (
             select from config_entry e join named o on o.cluster_id = e.cluster_id and o.resource_id = e.resource_id
              where e.cluster_id = n.cluster_id and e.kind = 'site-https' and e.refs @> array[:ref]
                and e.from_revision <= s.revision and e.to_revision > s.revision) then 'former'
           else 'pending' end as state
       from node_needs n join cluster_head h on h.cluster_id = n.cluster_id
       left join node_state s on s.node_id = n.id
       left join lateral (
         select x.reason, not starts_with(x.reason, :one) or starts_with(x.reason, :this) as own
           from jsonb_to_recordset(s.failed) as x(kind text, id text, reason text)
          where x.kind = 'site-https' and exists (
            select from named o where o.cluster_id = n.cluster_id and o.resource_id = x.id)
          order by own desc, x.id limit 1) f on true
      order by n.name, n.id limit :limit offset :offset`,
    { ref, limit, offset, one: 'certificate "', this: `certificate ${quoted(certificateName)}: ` },
  );
  if (rows.length > 0 || offset === 0) {
    return {
      items: rows.map(({ id, name, clusterId, state, message }) => ({ id, name, clusterId, state, message })),
      total: rows[0]?.total ?? 0,
    };
  }
  const { rows: counted } = await sql.raw(`${NODES} select count(*)::int as total from node_needs`, { ref });
  return { items: [], total: counted[0].total };
}
