// What nodes report. Written in sets by the node channel, never row by row; no index on a changing column.
import type { Pool } from 'pg';
import { BaseModel } from './base.ts';

/** A node without a heartbeat for this long is offline. */
export const ONLINE_SECONDS = 45;

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
  /** Decimal string; 0 = the node holds none. */
  challengeKeysVersion: string;
}

/** Where a node is in its feeds, stamped when the report arrived; a feed without a position is left as it is. */
export interface PositionRow {
  nodeId: string;
  at: Date;
  config: { epoch: bigint; revision: bigint; setHash: string; failed: string } | undefined;
  bans: { epoch: bigint; sequence: bigint } | undefined;
}

/** Writes heartbeats; nodes that are gone are skipped. A heartbeat ends the refusal shown before. */
export async function writeBeats(pool: Queries, rows: readonly BeatRow[]): Promise<void> {
  await pool.query({
    name: 'write-beats',
    text: `update node_state s set
        last_seen_at = greatest(s.last_seen_at, v."lastSeenAt"), info = v.info, features = v.features,
        missing_features = v."missingFeatures", metrics = v.metrics, ban_status = v."banStatus",
        remote_address = v."remoteAddress", data_plane_healthy = v."dataPlaneHealthy",
        data_plane_instance = v."dataPlaneInstance", message = v.message, auth_error = null,
        certificate_not_after = v."certificateNotAfter", challenge_keys_version = v."challengeKeysVersion", reported_at = v."lastSeenAt"
      from jsonb_to_recordset($1::jsonb) as v(
        "nodeId" text, "lastSeenAt" timestamptz, info jsonb, features text[], "missingFeatures" text[],
        metrics jsonb, "banStatus" jsonb, "remoteAddress" text, "dataPlaneHealthy" boolean,
        "dataPlaneInstance" text, message text, "certificateNotAfter" timestamptz,
        "challengeKeysVersion" bigint)
      where s.node_id = v."nodeId"`,
    values: [JSON.stringify(rows)],
  });
}

/** Writes positions; the time of a feed moves only with its position. */
export async function writePositions(pool: Queries, rows: readonly PositionRow[]): Promise<void> {
  const list = rows.map(({ nodeId, at, config, bans }) => ({
    nodeId,
    at,
    epoch: config && String(config.epoch),
    revision: config && String(config.revision),
    hash: config?.setHash,
    failed: config?.failed,
    banEpoch: bans && String(bans.epoch),
    banSequence: bans && String(bans.sequence),
  }));
  await pool.query({
    name: 'write-positions',
    text: `update node_state s set
        epoch = coalesce(v.epoch, s.epoch), track = case when v.epoch is null then s.track else 'S' end,
        revision = coalesce(v.revision, s.revision),
        set_hash = coalesce(decode(v.hash, 'hex'), s.set_hash),
        failed = coalesce(v.failed::jsonb, s.failed),
        applied_at = case when (v.epoch, v.revision) is distinct from (s.epoch, s.revision) and v.epoch is not null
          then v.at else s.applied_at end,
        ban_epoch = coalesce(v."banEpoch", s.ban_epoch), ban_sequence = coalesce(v."banSequence", s.ban_sequence),
        bans_applied_at = case
          when (v."banEpoch", v."banSequence") is distinct from (s.ban_epoch, s.ban_sequence) and v."banEpoch" is not null
          then v.at else s.bans_applied_at end
      from jsonb_to_recordset($1::jsonb) as v(
        "nodeId" text, at timestamptz, epoch bigint, revision bigint, hash text, failed text,
        "banEpoch" bigint, "banSequence" bigint)
      where s.node_id = v."nodeId"`,
    values: [JSON.stringify(list)],
  });
}

/** Why certificates were refused, by node. */
export async function writeAuthErrors(
  pool: Queries,
  rows: readonly { nodeId: string; reason: string }[],
): Promise<void> {
  await pool.query({
    name: 'write-auth-errors',
    text: `update node_state s set auth_error = v.reason
      from jsonb_to_recordset($1::jsonb) as v("nodeId" text, reason text)
      where s.node_id = v."nodeId" and s.auth_error is distinct from v.reason`,
    values: [JSON.stringify(rows)],
  });
}

/** Manual bans a node reported it could not hold. */
export async function replaceUnapplied(pool: Queries, nodeId: string, banIds: readonly string[]): Promise<void> {
  await pool.query({
    name: 'replace-unapplied',
    text: `with gone as (delete from ban_unapplied where node_id = $1 and ban_id <> all($2::text[]))
      insert into ban_unapplied (node_id, ban_id)
      select n.id, b.id from node n, unnest($2::text[]) as b(id) where n.id = $1
      on conflict do nothing`,
    values: [nodeId, banIds],
  });
}
