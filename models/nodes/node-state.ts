// What nodes report. Written in sets by the node channel, never row by row; no index on a changing column.
import type { Pool } from 'pg';
import { BaseModel } from '../db/base.ts';
import { LIVE, MAX_HINTED_NODES } from '../db/live-hint.ts';

/** A node without a heartbeat for this long is offline. */
export const ONLINE_SECONDS = 45;
/** Failed entries kept of a node: where there are so many, others may fail, too. */
export const MAX_FAILED_ENTRIES = 100;

export class NodeState extends BaseModel {
  static override tableName = 'node_state';
  static override idColumn = 'node_id';

  declare nodeId: string;
  declare lastSeenAt: Date | null;
  declare info: object;
  declare features: string[];
  declare remoteAddress: string | null;
  declare authError: string | null;
}

type Queries = Pick<Pool, 'query'>;

/** A heartbeat without its positions. Objects are JSON of the contract's shape. */
export interface BeatRow {
  nodeId: string;
  lastSeenAt: Date;
  info: object;
  features: string[];
  missingFeatures: string[];
  metrics: object | null;
  banStatus: object | null;
  remoteAddress: string | null;
  dataPlaneHealthy: boolean;
  dataPlaneInstance: string;
  message: string;
  certificateNotAfter: Date | null;
  /** Decimal strings; 0 = the node holds none. */
  challengeKeysVersion: string;
  sessionTicketKeysVersion: string;
  failingSites: readonly object[];
  originHealth: object;
  originTraffic: object;
  cacheUsage: object | null;
  /** What the node channel refuses the node for at the moment. */
  authError: string | null;
}

/** A place in a feed, and when it was reached. */
export interface PlaceRow {
  at: Date;
  epoch: bigint;
  sequence: bigint;
}

/**
 * Where a node is in its feeds, stamped when the report arrived, and when it reached each; a feed without a position is
 * left as it is.
 */
export interface PositionRow {
  nodeId: string;
  at: Date;
  config: { at: Date; epoch: bigint; track: 'S' | 'C'; revision: bigint; setHash: string; failed: string } | undefined;
  /** Of all other feeds, by name. */
  places: ReadonlyMap<string, PlaceRow>;
}

/** An origin that is down, in the reported health of origins. */
const DOWN = '$.sites.*[*].healthy ? (@ == false)';

/** Hints of the nodes in `changed` (node_id); of many, one for all. */
export const NODE_HINTS = `select case when count(*) over () > ${MAX_HINTED_NODES} then 'nodes' else 'nodes ' || node_id end as key
  from changed`;

/**
 * Writes heartbeats; nodes that are gone are skipped. A heartbeat ends the refusal shown before. Tells of nodes whose
 * state is another one now; figures move with every heartbeat and are one hint for all.
 */
export async function writeBeats(pool: Queries, rows: readonly BeatRow[]): Promise<void> {
  await pool.query({
    name: 'write-beats',
    text: `with beaten as (update node_state s set
        last_seen_at = greatest(s.last_seen_at, v."lastSeenAt"), info = v.info, features = v.features,
        missing_features = v."missingFeatures", metrics = v.metrics, ban_status = v."banStatus",
        remote_address = v."remoteAddress", data_plane_healthy = v."dataPlaneHealthy",
        data_plane_instance = v."dataPlaneInstance", message = v.message, auth_error = v."authError",
        certificate_not_after = v."certificateNotAfter", challenge_keys_version = v."challengeKeysVersion",
        session_ticket_keys_version = v."sessionTicketKeysVersion", reported_at = v."lastSeenAt",
        failing_sites = coalesce(v."failingSites", '[]'), origin_health = coalesce(v."originHealth", s.origin_health),
        origin_traffic = coalesce(v."originTraffic", '{}'), cache_usage = coalesce(v."cacheUsage", s.cache_usage)
      from jsonb_to_recordset($1::jsonb) as v(
        "nodeId" text, "lastSeenAt" timestamptz, info jsonb, features text[], "missingFeatures" text[],
        metrics jsonb, "banStatus" jsonb, "remoteAddress" text, "dataPlaneHealthy" boolean,
        "dataPlaneInstance" text, message text, "certificateNotAfter" timestamptz,
        "challengeKeysVersion" bigint, "sessionTicketKeysVersion" bigint, "failingSites" jsonb, "originHealth" jsonb,
        "originTraffic" jsonb, "cacheUsage" jsonb,
        "authError" text)
      where s.node_id = v."nodeId"
      returning s.node_id, coalesce(old.last_seen_at < new.last_seen_at - make_interval(secs => ${ONLINE_SECONDS}), true)
        or (old.data_plane_healthy, old.message, old.auth_error, old.info, old.features, old.missing_features,
            old.certificate_not_after, old.failing_sites = '[]', jsonb_path_exists(old.origin_health, '${DOWN}'))
        is distinct from (new.data_plane_healthy, new.message, new.auth_error, new.info, new.features,
            new.missing_features, new.certificate_not_after, new.failing_sites = '[]',
            jsonb_path_exists(new.origin_health, '${DOWN}')) as differs),
      changed as (select node_id from beaten where differs)
      insert into outbox (topic, key) select '${LIVE}', key from (${NODE_HINTS}) as h group by key
        union all select '${LIVE}', 'gauges' where exists (select from beaten)`,
    values: [JSON.stringify(rows)],
  });
}

/** Why certificates were refused, by node. */
export async function writeAuthErrors(
  pool: Queries,
  rows: readonly { nodeId: string; reason: string }[],
): Promise<void> {
  await pool.query({
    name: 'write-auth-errors',
    text: `with changed as (update node_state s set auth_error = v.reason
      from jsonb_to_recordset($1::jsonb) as v("nodeId" text, reason text)
      where s.node_id = v."nodeId" and s.auth_error is distinct from v.reason
      returning s.node_id)
      insert into outbox (topic, key) select '${LIVE}', key from (${NODE_HINTS}) as h group by key`,
    values: [JSON.stringify(rows)],
  });
}

/** Manual bans a node reported it could not hold. */
export async function replaceUnapplied(pool: Queries, nodeId: string, banIds: readonly string[]): Promise<void> {
  await pool.query({
    name: 'replace-unapplied',
    text: `with gone as (delete from ban_unapplied where node_id = $1 and ban_id <> all($2::text[])),
      told as (insert into outbox (topic, key)
        select '${LIVE}', key from node n, lateral (values ('nodes ' || n.id), ('bans ' || n.cluster_id)) as h(key)
        where n.id = $1)
      insert into ban_unapplied (node_id, ban_id)
      select n.id, b.id from node n, unnest($2::text[]) as b(id) where n.id = $1
      on conflict do nothing`,
    values: [nodeId, banIds],
  });
}

/** Tells of the nodes that became offline in the last seconds: nothing else happens when a node stops to report. */
export async function tellOfflineNodes(pool: Queries, seconds: number): Promise<void> {
  await pool.query({
    name: 'tell-offline-nodes',
    text: `with changed as (select node_id from node_state
        where last_seen_at <= now() - make_interval(secs => ${ONLINE_SECONDS})
          and last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS} + $1))
      insert into outbox (topic, key) select '${LIVE}', key from (${NODE_HINTS}) as h group by key`,
    values: [seconds],
  });
}
