// Reads the ban feed of a cluster: what changed after a position, or everything in pages. A reader that asks after its
// own position never misses a change, because numbers are in the order of commits (models/bans/ban-numbers.ts).
import { create } from '@bufbuild/protobuf';
import type { Pool } from 'pg';
import {
  type Ban,
  type BanBatch,
  BanBatchSchema,
  BanPositionSchema,
  BanSchema,
  BanSource,
  type GetBansRequest,
  type GetBansResponse,
  GetBansResponseSchema,
  type OwnBanLift,
  OwnBanLiftSchema,
} from '../../proto/gen/svc/node/v1/bans_pb.js';

/** Bans in one message at most, and unless asked otherwise. */
export const MAX_BAN_LIMIT = 5000;
export const DEFAULT_BAN_LIMIT = 2000;

/** Changes of a batch `b` of the feed with their times and those of the changes before them (runtime/feeds.ts). */
export const BAN_CHANGES = `
  select seq as number, changed_at as at, cluster_id, lag(changed_at) over (order by seq) as before
    from ban_change where seq <= b."to"
     and seq >= coalesce((select max(p.seq) from ban_change p where p.seq <= b."from"), b."from")`;

export interface BanPlace {
  epoch: bigint;
  sequence: bigint;
}

interface BanRow {
  id: string;
  site_id: string | null;
  cidr: string;
  source: 'manual' | 'auto';
  reason: string;
  expires_at: Date;
  created_at: Date;
}

/** The final state of a changed ban; nulls where the ban's row is gone. */
interface ChangeRow {
  ban_id: string;
  id: string | null;
  site_id: string | null;
  cidr: string;
  source: 'manual' | 'auto';
  reason: string;
  expires_at: Date;
  created_at: Date;
  lifted_at: Date | null;
  enforced: boolean;
  /** Seconds, of the receiving cluster. */
  longest_scan_ban: number;
}

const BAN_COLUMNS = 'b.id, b.site_id, b.cidr::text, b.source, b.reason, b.expires_at, b.created_at';

/** The feed's last number that concerns the cluster, and the epoch. */
export async function readBanTarget(pool: Pick<Pool, 'query'>, clusterId: string): Promise<BanPlace> {
  const { rows } = await pool.query<{ epoch: string; seq: string }>({
    name: 'ban-target',
    text: `select (select epoch from console_state) as epoch,
      (select coalesce(max(seq), 0) from ban_head where cluster_id in ($1, '')) as seq`,
    values: [clusterId],
  });
  return { epoch: BigInt(rows[0]!.epoch), sequence: BigInt(rows[0]!.seq) };
}

/** The same for all clusters (or the given ones) by cluster id. */
export async function readBanTargets(
  pool: Pick<Pool, 'query'>,
  clusterIds?: readonly string[],
): Promise<Map<string, BanPlace>> {
  const { rows } = await pool.query<{ id: string; epoch: string; seq: string }>({
    name: 'ban-targets',
    text: `select c.id, s.epoch, greatest(h.seq, p.seq, 0) as seq from cluster c cross join console_state s
      left join ban_head h on h.cluster_id = c.id left join ban_head p on p.cluster_id = ''
      where $1::text[] is null or c.id = any($1::text[])`,
    values: [clusterIds ?? null],
  });
  return new Map(rows.map(({ id, epoch, seq }) => [id, { epoch: BigInt(epoch), sequence: BigInt(seq) }]));
}

/**
 * The final state of the bans changed in (after, to] that concern the cluster; `to` is the target, or the place
 * reached by `limit` changes. Null when nothing follows `after`. The caller has checked that `after` is of this epoch.
 */
export async function readBanChanges(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  after: bigint,
  limit: number = DEFAULT_BAN_LIMIT,
): Promise<BanBatch | null> {
  // One statement: the target, the changes and the bans of one moment.
  const { rows } = await pool.query<{ epoch: string; to: string } & ChangeRow>({
    name: 'ban-changes',
    text: `
      with change as materialized (
        select seq, ban_id from (
          (select seq, ban_id from ban_change where cluster_id = $1 and seq > $2 order by seq limit $3)
          union all
          (select seq, ban_id from ban_change where cluster_id = '' and seq > $2 order by seq limit $3)
        ) both_feeds order by seq limit $3
      ), reached as (
        select case when (select count(*) from change) = $3 then (select max(seq) from change)
          else (select coalesce(max(seq), 0) from ban_head where cluster_id in ($1, '')) end as seq
      )
      select s.epoch, r.seq as "to", c.ban_id, ${BAN_COLUMNS}, b.lifted_at,
        (select longest_scan_ban_seconds from cluster where id = $1) as longest_scan_ban,
        b.lifted_at is null and b.expires_at > now() and b.distributed and coalesce(b.cluster_id, $1) = $1 as enforced
      from console_state s cross join reached r
      left join (select ban_id, max(seq) as seq from change group by ban_id) c on true
      left join ban b on b.id = c.ban_id
      order by c.seq`,
    values: [clusterId, after.toString(), limit],
  });
  const first = rows[0];
  if (!first || BigInt(first.to) <= after) return null;
  const batch = create(BanBatchSchema, {
    epoch: BigInt(first.epoch),
    from: after,
    to: BigInt(first.to),
    serverTimeMs: BigInt(Date.now()),
  });
  for (const row of rows) {
    if (row.ban_id !== null) addFinalState(batch, row);
  }
  return batch;
}

function addFinalState(batch: Pick<BanBatch, 'upserts' | 'removedIds' | 'liftedOwn'>, row: ChangeRow): void {
  if (row.id !== null && row.enforced) {
    batch.upserts.push(toBan(row as BanRow));
    return;
  }
  batch.removedIds.push(row.ban_id);
  if (row.id !== null && row.lifted_at && row.source === 'auto')
    batch.liftedOwn.push(toLift(row as BanRow & ChangeRow));
}

/**
 * One page of all bans the cluster's nodes enforce, by id. Bans changed while pages are read are the changes after the
 * position, which is that of the first page. `token` continues; null starts over.
 */
async function readBanPage(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  token: { place: BanPlace; afterId: string } | null,
  limit: number,
): Promise<GetBansResponse> {
  const source = (condition: string) => `
    (select b.* from ban b where ${condition} and b.lifted_at is null and b.id > $2 and b.distributed
      and b.expires_at > now() order by b.id limit $3)`;
  const { rows } = await pool.query<{ epoch: string; seq: string; id: string | null } & BanRow>({
    name: 'ban-page',
    text: `
      select s.epoch, (select coalesce(max(seq), 0) from ban_head where cluster_id in ($1, '')) as seq, b.*
      from console_state s left join (
        select ${BAN_COLUMNS} from (${source('b.cluster_id = $1')} union all ${source('b.cluster_id is null')}) b
        order by b.id limit $3
      ) b on true order by b.id`,
    values: [clusterId, token?.afterId ?? '', limit],
  });
  const now: BanPlace = { epoch: BigInt(rows[0]!.epoch), sequence: BigInt(rows[0]!.seq) };
  // Of another history, or of none: pages continue at places that the feed has reached.
  if (token && (token.place.epoch !== now.epoch || token.place.sequence > now.sequence)) {
    return readBanPage(pool, clusterId, null, limit);
  }
  const place = token?.place ?? now;
  const bans = rows.filter((row) => row.id !== null);
  return create(GetBansResponseSchema, {
    position: create(BanPositionSchema, place),
    reset: token === null,
    upserts: bans.map(toBan),
    serverTimeMs: BigInt(Date.now()),
    nextPageToken: bans.length < limit ? '' : `s.${place.epoch}.${place.sequence}.${bans.at(-1)!.id}`,
  });
}

/** Everything of the feed as a node without a valid position gets it; see {@link answerGetBans}. */
export async function readBanSnapshot(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  pageToken: string,
  limit: number = DEFAULT_BAN_LIMIT,
): Promise<GetBansResponse> {
  const match = /^s\.([0-9]{1,19})\.([0-9]{1,18})\.([A-Za-z0-9_-]{1,128})$/.exec(pageToken);
  const token = match && {
    place: { epoch: BigInt(match[1]!), sequence: BigInt(match[2]!) },
    afterId: match[3]!,
  };
  return readBanPage(pool, clusterId, token, limit);
}

/**
 * The answer of GetBans: the changes after the node's position where it belongs to this history, else everything with
 * `reset`. Both in pages of up to `limit`.
 */
export async function answerGetBans(
  pool: Pick<Pool, 'query'>,
  clusterId: string,
  request: GetBansRequest,
): Promise<GetBansResponse> {
  const limit = Math.min(request.limit || DEFAULT_BAN_LIMIT, MAX_BAN_LIMIT);
  if (request.pageToken.startsWith('s.')) return readBanSnapshot(pool, clusterId, request.pageToken, limit);
  const target = await readBanTarget(pool, clusterId);
  const continued = /^c\.([0-9]{1,19})\.([0-9]{1,18})$/.exec(request.pageToken);
  const after = continued ? { epoch: BigInt(continued[1]!), sequence: BigInt(continued[2]!) } : request.after;
  if (!after || after.epoch !== target.epoch || after.sequence > target.sequence) {
    return readBanSnapshot(pool, clusterId, '', limit);
  }
  const batch = await readBanChanges(pool, clusterId, after.sequence, limit);
  if (batch && batch.epoch !== target.epoch) return readBanSnapshot(pool, clusterId, '', limit);
  const sequence = batch?.to ?? after.sequence;
  return create(GetBansResponseSchema, {
    position: create(BanPositionSchema, { epoch: target.epoch, sequence }),
    upserts: batch?.upserts ?? [],
    removedIds: batch?.removedIds ?? [],
    liftedOwn: batch?.liftedOwn ?? [],
    serverTimeMs: BigInt(Date.now()),
    nextPageToken: sequence < target.sequence ? `c.${target.epoch}.${sequence}` : '',
  });
}

function toBan(row: BanRow): Ban {
  return create(BanSchema, {
    id: row.id,
    siteId: row.site_id ?? '',
    cidr: row.cidr,
    source: row.source === 'manual' ? BanSource.MANUAL : BanSource.AUTO,
    expiresAtMs: BigInt(row.expires_at.getTime()),
    createdAtMs: BigInt(row.created_at.getTime()),
    reason: row.reason,
  });
}

/**
 * A global unban also ends what other nodes made of the address and have not reported: none of it ends later than the
 * longest scan ban after the unban.
 */
function toLift(row: BanRow & ChangeRow): OwnBanLift {
  const longest = row.site_id === null ? row.lifted_at!.getTime() + row.longest_scan_ban * 1000 : 0;
  return create(OwnBanLiftSchema, {
    siteId: row.site_id ?? '',
    cidr: row.cidr,
    expiresNoLaterThanMs: BigInt(Math.max(row.expires_at.getTime(), longest)),
  });
}
