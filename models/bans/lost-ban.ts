// Bans that a restore has lost: nodes held them when the epoch began, and the restored database lacks them, or ends them earlier.
// They are for people to look at and ban again; nothing is banned by them.
import type { Knex } from 'knex';
import { type Cidr, formatCidr } from '../../contract/scalars/cidr.ts';
import type { Tx } from '../../runtime/write.ts';
import { recordAudit } from '../audit/audit-entry.ts';
import { hint, leaveHints } from '../db/live-hint.ts';
import { SWEEP_BATCH } from '../db/sweeps.ts';

/** Bans of one report; nodes name no more. */
export const MAX_LOST_REPORT = 1000;
/** Bans that are kept; of more, their number. */
export const MAX_LOST = 10_000;
/** No ban lasts longer. */
const LONGEST = `interval '8 days'`;
/** Clocks that differ a little make no ban shorter. */
const SHORTER = `interval '60 seconds'`;

export interface LostBan {
  id: string;
  siteId: string | null;
  cidr: Cidr;
  source: 'manual' | 'auto';
  reason: string;
  createdAt: Date;
  expiresAt: Date;
}

export interface LostBanReport {
  epoch: bigint;
  bans: readonly LostBan[];
  unnamed: number;
}

export interface LostBanRow {
  id: string;
  site_id: string | null;
  site_name: string | null;
  cidr: string;
  source: 'manual' | 'auto';
  reason: string;
  created_at: Date;
  expires_at: Date;
  nodes: number;
  reported_at: Date;
}

/** Adds a node's report to those of the others. False: it is not of the present epoch. */
export async function recordLostBans(
  tx: Tx,
  node: { nodeId: string; name: string },
  { epoch, bans, unnamed }: LostBanReport,
): Promise<boolean> {
  const { sql, now } = tx;
  // One report at a time: the limit holds, and the epoch stays.
  const state = (await sql('console_state').forUpdate().first('epoch')) as { epoch: string };
  if (BigInt(state.epoch) !== epoch) return false;
  const first = await sql('lost_ban_report')
    .insert({ epoch: state.epoch, node_id: node.nodeId, unnamed, reported_at: now })
    .onConflict()
    .ignore();
  if ((first as unknown as { rowCount: number }).rowCount === 0) return true;
  const added = await merge(sql, state.epoch, bans, now);
  if (added.over > 0) {
    await sql('lost_ban_report')
      .where({ epoch: state.epoch, node_id: node.nodeId })
      .update({ unnamed: unnamed + added.over });
  }
  if (added.fresh > 0 || unnamed > 0) {
    const found = { node: node.name, bans: added.fresh, unnamed: unnamed + added.over };
    await recordAudit(tx, 'system.bans_lost', null, found);
    await leaveHints(sql, [hint('bans')]);
  }
  return true;
}

/**
 * Those that the database has are not lost: a node that was away may hold what was lifted before the backup. `over`: how many
 * found no room.
 */
async function merge(
  sql: Knex,
  epoch: string,
  bans: readonly LostBan[],
  now: Date,
): Promise<{ fresh: number; over: number }> {
  if (bans.length === 0) return { fresh: 0, over: 0 };
  const given = JSON.stringify(
    bans.map((ban) => ({
      id: ban.id,
      site_id: ban.siteId,
      cidr: formatCidr(ban.cidr),
      source: ban.source,
      reason: ban.reason,
      created_at: ban.createdAt,
      expires_at: ban.expiresAt,
    })),
  );
  const { rows } = await sql.raw<{ rows: { fresh: number; over: number }[] }>(
    `with given as (
       select distinct on (id) g.*, exists (select from lost_ban l where l.id = g.id) as known
         from jsonb_to_recordset(cast(:given as jsonb)) as g(id text, site_id text, cidr cidr, source text, reason text,
           created_at timestamptz, expires_at timestamptz)
        where not exists (
          select from ban b where b.id = g.id and (b.lifted_at is not null or b.expires_at >= g.expires_at - ${SHORTER}))
     ), fitting as (
       select * from (select g.*, row_number() over (partition by known order by created_at desc) as place from given g) g
        where known or place <= ${MAX_LOST} - (select count(*) from lost_ban)
     ), stored as (
       insert into lost_ban as l (id, epoch, site_id, cidr, source, reason, created_at, expires_at, nodes, reported_at)
       select id, :epoch, site_id, cidr, source, reason, created_at, expires_at, 1, :now from fitting
       on conflict (id) do update
         set nodes = case when l.epoch = excluded.epoch then l.nodes + 1 else 1 end, epoch = excluded.epoch,
             expires_at = greatest(l.expires_at, excluded.expires_at)
     )
     select count(*) filter (where not known and id in (select id from fitting))::int as fresh,
            count(*) filter (where id not in (select id from fitting))::int as over from given`,
    { given, epoch, now },
  );
  return rows[0]!;
}

/** Of a `lost_ban l`: nobody has banned the address again for as long. */
const STILL_LOST = `l.expires_at > :now and not exists (
  select from ban b where b.cidr = l.cidr and b.site_id is not distinct from l.site_id and b.lifted_at is null
    and b.expires_at > :now and b.source in ('manual', l.source) and (b.id <> l.id or b.expires_at >= l.expires_at - ${SHORTER}))`;

/** Newest first. */
export async function lostBanPage(sql: Knex, now: Date, limit: number, offset: number): Promise<LostBanRow[]> {
  const { rows } = await sql.raw<{ rows: LostBanRow[] }>(
    `select l.id, l.site_id, s.name as site_name, l.cidr::text, l.source, l.reason, l.created_at, l.expires_at, l.nodes,
            l.reported_at
       from lost_ban l left join site s on s.id = l.site_id
      where ${STILL_LOST} order by l.created_at desc, l.id desc limit :limit offset :offset`,
    { now, limit, offset },
  );
  return rows;
}

export async function lostBanCount(sql: Knex, now: Date): Promise<number> {
  const { rows } = await sql.raw<{ rows: { total: number }[] }>(
    `select count(*)::int as total from lost_ban l where ${STILL_LOST}`,
    { now },
  );
  return rows[0]!.total;
}

/** `unnamed`: of the node that left out the most. */
export async function lostBanSums(sql: Knex): Promise<{ unnamed: number; nodes: number }> {
  const { rows } = await sql.raw<{ rows: { unnamed: number; nodes: number }[] }>(
    `select coalesce(max(unnamed), 0) as unnamed, count(distinct node_id)::int as nodes
       from lost_ban_report where reported_at > now() - ${LONGEST}`,
  );
  return rows[0]!;
}

/** Expired ones. */
export async function purgeLostBans(sql: Knex): Promise<number> {
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `delete from lost_ban where id = any(array(select id from lost_ban where expires_at < now() limit ${SWEEP_BATCH}))`,
  );
  return rowCount;
}

/** Reports whose bans have all ended. */
export async function purgeLostBanReports(sql: Knex): Promise<number> {
  const { rowCount } = await sql.raw<{ rowCount: number }>(
    `delete from lost_ban_report where ctid = any(array(
       select ctid from lost_ban_report where reported_at < now() - ${LONGEST} limit ${SWEEP_BATCH}))`,
  );
  return rowCount;
}
