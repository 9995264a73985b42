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
  /** What the node channel refuses the node for at the moment. */
  authError: string | null;
}

/**
 * Where a node is in its feeds, stamped when the report arrived, and when it reached each; a feed without a position is
 * left as it is.
 */
export interface PositionRow {
  nodeId: string;
  at: Date;
  config: { at: Date; epoch: bigint; track: 'S' | 'C'; revision: bigint; setHash: string; failed: string } | undefined;
  bans: { at: Date; epoch: bigint; sequence: bigint } | undefined;
  acme: { epoch: bigint; sequence: bigint } | undefined;
}

/** An origin that is down, in the reported health of origins. */
const DOWN = '$.sites.*[*].healthy ? (@ == false)';

/** Hints of the nodes in `changed` (node_id); of many, one for all. */
const NODE_HINTS = `select case when count(*) over () > ${MAX_HINTED_NODES} then 'nodes' else 'nodes ' || node_id end as key
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
        failing_sites = coalesce(v."failingSites", '[]'), origin_health = coalesce(v."originHealth", s.origin_health)
      from jsonb_to_recordset($1::jsonb) as v(
        "nodeId" text, "lastSeenAt" timestamptz, info jsonb, features text[], "missingFeatures" text[],
        metrics jsonb, "banStatus" jsonb, "remoteAddress" text, "dataPlaneHealthy" boolean,
        "dataPlaneInstance" text, message text, "certificateNotAfter" timestamptz,
        "challengeKeysVersion" bigint, "sessionTicketKeysVersion" bigint, "failingSites" jsonb, "originHealth" jsonb,
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

/** Writes positions; the time of a feed moves only with its position. Answers whether there is something to tell. */
export async function writePositions(pool: Queries, rows: readonly PositionRow[]): Promise<boolean> {
  const list = rows.map(({ nodeId, config, bans, acme }) => ({
    nodeId,
    configAt: config?.at,
    bansAt: bans?.at,
    epoch: config && String(config.epoch),
    track: config?.track,
    revision: config && String(config.revision),
    hash: config?.setHash,
    failed: config?.failed,
    banEpoch: bans && String(bans.epoch),
    banSequence: bans && String(bans.sequence),
    acmeEpoch: acme && String(acme.epoch),
    acmeSequence: acme && String(acme.sequence),
  }));
  const { rowCount } = await pool.query({
    name: 'write-positions',
    text: `with moved as (update node_state s set
        epoch = coalesce(v.epoch, s.epoch), track = coalesce(v.track, s.track),
        revision = coalesce(v.revision, s.revision),
        set_hash = coalesce(decode(v.hash, 'hex'), s.set_hash),
        failed = coalesce(v.failed::jsonb, s.failed),
        applied_at = case when (v.epoch, v.revision) is distinct from (s.epoch, s.revision) and v.epoch is not null
          then v."configAt" else s.applied_at end,
        ban_epoch = coalesce(v."banEpoch", s.ban_epoch), ban_sequence = coalesce(v."banSequence", s.ban_sequence),
        bans_applied_at = case
          when (v."banEpoch", v."banSequence") is distinct from (s.ban_epoch, s.ban_sequence) and v."banEpoch" is not null
          then v."bansAt" else s.bans_applied_at end,
        acme_epoch = coalesce(v."acmeEpoch", s.acme_epoch),
        acme_sequence = coalesce(v."acmeSequence", s.acme_sequence)
      from jsonb_to_recordset($1::jsonb) as v(
        "nodeId" text, "configAt" timestamptz, "bansAt" timestamptz, epoch bigint, track text, revision bigint, hash text, failed text,
        "banEpoch" bigint, "banSequence" bigint, "acmeEpoch" bigint, "acmeSequence" bigint)
      where s.node_id = v."nodeId"
      returning s.node_id, (old.epoch, old.track, old.revision, old.failed)
          is distinct from (new.epoch, new.track, new.revision, new.failed)
          as config,
        (old.ban_epoch, old.ban_sequence) is distinct from (new.ban_epoch, new.ban_sequence) as bans),
      changed as (select m.*, n.cluster_id from moved m join node n on n.id = m.node_id where m.config or m.bans)
      insert into outbox (topic, key) select '${LIVE}', key from (${NODE_HINTS}
        union select 'revisions ' || cluster_id from changed where config
        union select 'bans ' || cluster_id from changed where bans) as h`,
    values: [JSON.stringify(list)],
  });
  return (rowCount ?? 0) > 0;
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
