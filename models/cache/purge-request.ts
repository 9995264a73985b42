// Tasks of PURGE requests, which nodes create for clients that had the key of a site.
import type { Knex } from 'knex';
import { PurgeScope } from '../../proto/gen/svc/node/v1/purges_pb.js';
import type { Tx } from '../../runtime/write.ts';
import { recordAudit } from '../audit/audit-entry.ts';
import { insertCacheTask, insertTaskPlace } from './cache-task.ts';
import { addPurge } from './purge.ts';
import { sitesOfHosts } from './purge-sites.ts';
import { taskUrl } from './task-url.ts';

/** Of one site. */
const TASKS_PER_MINUTE = 120;
const MINUTE_MS = 60_000;
const MAX_URL_LENGTH = 2048;

export type PurgeOutcome =
  | { taskId: string }
  | { refusal: 'purge-url-invalid' | 'purge-unavailable' }
  | { refusal: 'purge-rate-limited'; retryAfterSeconds: number };

/** Purges a URL of a site of the node's cluster; the actor of the call is the node. */
export async function purgeByRequest(
  tx: Tx,
  clusterId: string,
  { siteId, url }: { siteId: string; url: string },
): Promise<PurgeOutcome> {
  const { sql, now, call } = tx;
  const target = url.length <= MAX_URL_LENGTH ? taskUrl(url) : null;
  if (!target) return { refusal: 'purge-url-invalid' };
  const site = (await sitesOfHosts(sql, [target.host])).get(target.host)?.find(({ id }) => id === siteId);
  if (!site) return { refusal: 'purge-url-invalid' };
  if (!(await holdPurgeMethod(sql, siteId, clusterId))) return { refusal: 'purge-unavailable' };
  const youngMs = await ageOfLast(sql, siteId, now);
  if (youngMs !== null) {
    return { refusal: 'purge-rate-limited', retryAfterSeconds: Math.max(1, Math.ceil((MINUTE_MS - youngMs) / 1000)) };
  }
  const { id, name } = site;
  const taskId = await insertCacheTask(
    sql,
    {
      type: 'url',
      targets: [target.text],
      sites: [{ id, name }],
      variants: [],
      maxUrls: null,
      source: 'purge_method',
      createdByName: call.actor.name,
    },
    now,
  );
  await recordAudit(
    tx,
    'cache.purge',
    { type: 'cache_task', id: taskId, name: 'url' },
    { type: 'url', targets: 1, sites: [name] },
  );
  const { host, path, query } = target;
  const purge = { siteIds: [], tags: [], targets: [{ scope: PurgeScope.URL, siteId: id, host, path, query }] };
  await insertTaskPlace(sql, taskId, { clusterId, ...(await addPurge(tx, clusterId, purge)), nodes: null });
  return { taskId };
}

/** Whether the site takes PURGE requests. Those of one site wait for each other, so that they are counted one by one. */
async function holdPurgeMethod(sql: Knex, siteId: string, clusterId: string): Promise<boolean> {
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `select from site_purge_method m join site s on s.id = m.site_id
      where m.site_id = ? and s.cluster_id = ? and s.enabled and m.enabled for no key update of m for key share of s`,
    [siteId, clusterId],
  );
  return rowCount === 1;
}

/** How old the oldest of the tasks is that fill the minute, in milliseconds; null while there is room. */
async function ageOfLast(sql: Knex, siteId: string, now: Date): Promise<number | null> {
  const { rows } = await sql.raw<{ rows: { ageMs: number }[] }>(
    `select extract(epoch from :now::timestamptz - t.created_at)::float8 * 1000 as "ageMs"
       from cache_task_site l join cache_task t on t.id = l.task_id
      where l.site_id = :siteId and t.source = 'purge_method' and t.created_at > :now::timestamptz - interval '1 minute'
      order by l.task_id desc offset ${TASKS_PER_MINUTE - 1} limit 1`,
    { siteId, now },
  );
  return rows[0]?.ageMs ?? null;
}
