// Platform-wide changes: they do not take the head locks of all clusters in one transaction, but leave a request for
// each, which is published in a short transaction of its own after the commit.
import type { Knex } from 'knex';
import type { Actor } from '../../runtime/call.ts';
import type { Tx } from '../../runtime/write.ts';
import { keepCluster } from '../clusters/cluster.ts';
import { LOCK_PLATFORM_SHARED } from '../db/locks.ts';
import { type ChangedEntry, MAX_ENTRIES, type Publication, publish } from './publish.ts';
import { distinct } from './write-revision.ts';

/** An entry that is compiled when it is published. */
type RequestedEntry = Omit<ChangedEntry, 'compiled'>;

/**
 * Asks for the same publication in every cluster (or the given ones): the requests commit with the change, each
 * cluster is published in its own short transaction afterwards. Call publishRequested (pipeline/publish-requested.ts)
 * with the answered cluster ids after the commit, so that reads see it.
 */
export async function requestPublication(
  tx: Tx,
  publication: Omit<Publication, 'clusterId' | 'entries' | 'audit'> & { entries: readonly RequestedEntry[] },
  clusterIds?: readonly string[],
): Promise<string[]> {
  const names = distinct(publication.entries);
  // Beside the names: a console of the release before refuses such a request, and leaves it to one that knows.
  const ends = (publication.ends ?? []).map((owner) => ({ owner }));
  if (names.length > MAX_ENTRIES)
    throw new Error(`${names.length} entries in one publication, which is over the limit`);
  await tx.sql.raw(LOCK_PLATFORM_SHARED);
  // Locked while they are read: a cluster that is being deleted is waited for, and left out once it is gone.
  const { rows } = await tx.sql.raw<{ rows: { cluster_id: string }[] }>(
    `insert into publish_request (cluster_id, entries, reason, params, actor)
     select id, ?::jsonb, ?, ?::jsonb, ?::jsonb from cluster where ?::text[] is null or id = any(?::text[]) order by id
        for key share
     returning cluster_id`,
    [
      JSON.stringify([...names, ...ends]),
      publication.reason,
      JSON.stringify(publication.params ?? {}),
      JSON.stringify(publication.actor ?? tx.call.actor),
      (clusterIds ?? null) as never,
      (clusterIds ?? null) as never,
    ],
  );
  return rows.map((row) => row.cluster_id);
}

/** Clusters with requests that are older than the given age, at most 1,000. */
export async function clustersWithRequests(sql: Knex, ageSeconds: number): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { cluster_id: string }[] }>(
    `select distinct cluster_id from publish_request where created_at < now() - make_interval(secs => ?) limit 1000`,
    [ageSeconds],
  );
  return rows.map((row) => row.cluster_id);
}

/** Publishes up to `limit` requests of a cluster, oldest first, each under its own reason; answers how many there were. */
export async function publishPending(tx: Tx, clusterId: string, limit = 20): Promise<number> {
  if (!(await keepCluster(tx.sql, clusterId))) return 0;
  const { rows } = await tx.sql.raw<{
    rows: {
      id: string;
      entries: (RequestedEntry | { owner: string })[];
      reason: string;
      params: Record<string, unknown>;
      actor: Actor;
    }[];
  }>(
    `delete from publish_request where id in (
       select id from publish_request where cluster_id = ? order by id limit ? for update)
     returning id, entries, reason, params, actor`,
    [clusterId, limit],
  );
  rows.sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
  for (const { entries, reason, params, actor } of rows) {
    const names = entries.filter((entry) => 'kind' in entry);
    const ends = entries.flatMap((entry) => ('owner' in entry ? [entry.owner] : []));
    await publish(tx, { clusterId, entries: names, ends, reason, params, actor });
  }
  return rows.length;
}
