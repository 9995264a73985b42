// Bans. Active = not lifted and not expired. A row outlives its ban by an hour, for nodes that still hold a copy.
//
// Order inside a transaction: checkBan (which locks), the audit entry, and last one of the writes, because each takes
// the feed's lock and every other ban of the console waits from there to the commit.
import type { Knex } from 'knex';
import { DEFAULT_BAN_SETTINGS } from '../contract/resources/bans.ts';
import type { Actor } from '../mixins/call.ts';
import type { Tx } from '../mixins/write.ts';
import type { BanSettings } from './ban-setting.ts';
import { type BanNumber, nextBanSeq, recordBanChanges } from './feed.ts';

export interface BanTrigger {
  metric: string;
  observed: number;
  threshold: number;
  windowSeconds: number;
}

export interface BanRow {
  id: string;
  scope: 'site' | 'platform';
  siteId: string | null;
  /** Whose nodes enforce it; null = all. */
  clusterId: string | null;
  cidr: string;
  reason: string;
  source: 'manual' | 'auto';
  nodeId: string | null;
  trigger: BanTrigger | null;
  createdBy: Actor | null;
  distributed: boolean;
  createdAt: Date;
  expiresAt: Date;
  seq: string;
}

/** What a ban is the ban of: at most one active manual ban has it. */
export interface BanTarget {
  siteId: string | null;
  clusterId: string | null;
  cidr: string;
}

export interface BanEnd {
  reason: string;
  expiresAt: Date;
}

const HOUR_MS = 3_600_000;

/** Columns of a {@link BanRow} of `ban b`. */
export const BAN_COLUMNS = `
  b.id, b.scope, b.site_id as "siteId", b.cluster_id as "clusterId", b.cidr::text, b.reason, b.source,
  b.node_id as "nodeId", b.trigger, b.created_by as "createdBy", b.distributed, b.created_at as "createdAt",
  b.expires_at as "expiresAt", b.seq::text`;

/** The active ban, locked until the end of the transaction. */
export async function lockActiveBan(sql: Knex, id: string, now: Date): Promise<BanRow | undefined> {
  const { rows } = await sql.raw(
    `select ${BAN_COLUMNS} from ban b where id = ? and lifted_at is null and expires_at > ? for update`,
    [id, now],
  );
  return rows[0];
}

/** What creating a ban has to judge; its locks hold until the end of the transaction. */
export interface BanCheck {
  /** Id for a new ban. */
  newId: string;
  /** Null when there is no such site, or none was asked for. */
  site: { name: string; clusterId: string } | null;
  /** The unlifted manual ban of the address, expired or not. */
  before: { id: string; active: boolean; createdAt: Date; createdBy: Actor | null; unappliedNodes: number } | null;
  settings: BanSettings;
  /** A protected address that the ban would touch. */
  protected: string | null;
  /** Active manual bans, at most; null when only counting tells. */
  most: number | null;
}

/** Locks the address, and what bans are checked against, and reads what has to be judged. */
export async function checkBan(sql: Knex, siteId: string | null, cidr: string, now: Date): Promise<BanCheck> {
  const { rows } = await sql.raw('select ban_check(?, cast(? as cidr), ?) as found', [siteId, cidr, now]);
  const found = rows[0].found;
  const before = found.before && { ...found.before, createdAt: new Date(found.before.createdAt) };
  return { ...found, before, settings: { ...DEFAULT_BAN_SETTINGS, ...found.settings } };
}

/** The active manual ban of the address, for looking only. */
export async function activeManualBan(
  sql: Knex,
  siteId: string | null,
  cidr: string,
  now: Date,
): Promise<BanRow | undefined> {
  const { rows } = await sql.raw(
    `select ${BAN_COLUMNS} from ban b where source = 'manual' and coalesce(site_id, '') = ? and cidr = cast(? as cidr)
      and lifted_at is null and expires_at > ?`,
    [siteId ?? '', cidr, now],
  );
  return rows[0];
}

/** Gives an active manual ban another reason and end; answers its number. */
export async function renewBan(tx: Tx, id: string, { reason, expiresAt }: BanEnd): Promise<string> {
  return written(tx, 'select epoch::text, seq::text from ban_renew(?, ?, ?)', [id, reason, expiresAt]);
}

/**
 * Inserts a manual ban; answers its number. An expired one of the address makes way; an automatic platform ban of the
 * same addresses, shared or not, is taken over: it is lifted and nodes get the manual one.
 */
export async function insertManualBan(
  tx: Tx,
  id: string,
  { siteId, clusterId, cidr }: BanTarget,
  { reason, expiresAt }: BanEnd,
): Promise<string> {
  return written(tx, 'select epoch::text, seq::text from ban_insert(?, ?, ?, cast(? as cidr), ?, ?, ?, ?)', [
    id,
    siteId,
    clusterId,
    cidr,
    reason,
    JSON.stringify(creatorOf(tx)),
    tx.now,
    expiresAt,
  ]);
}

/** Who a manual ban made in the transaction is by. */
export function creatorOf(tx: Tx): Actor {
  const { type, id, name } = tx.call.actor;
  return { type, id, name };
}

/** Lifts one locked, active ban. */
export async function liftBan(tx: Tx, id: string): Promise<void> {
  await written(tx, 'select epoch::text, seq::text from ban_lift(?, ?)', [id, tx.now]);
}

/** Runs a function of the database that records a change in the feed; answers the change's number. */
async function written(tx: Tx, statement: string, bindings: readonly (string | Date | null)[]): Promise<string> {
  const { rows } = await tx.sql.raw<{ rows: { epoch: string; seq: string }[] }>(statement, bindings as never);
  const { epoch, seq } = rows[0]!;
  tx.wake = true;
  tx.call.changes.push(`ban=${epoch}:${seq}`);
  return seq;
}

/** Lifts every active ban of a site; answers how many there were. */
export async function liftBansOfSite(tx: Tx, siteId: string): Promise<number> {
  const { rows: any } = await tx.sql.raw(
    'select 1 from ban where site_id = ? and lifted_at is null and expires_at > ? limit 1',
    [siteId, tx.now],
  );
  if (any.length === 0) return 0;
  const number = await nextBanSeq(tx);
  const { rows } = await tx.sql.raw<{ rows: { id: string; clusterId: string; expiresAt: Date; seq: string }[] }>(
    `update ban set lifted_at = ?, seq = nextval('ban_seq')
      where site_id = ? and lifted_at is null and expires_at > ?
     returning id, cluster_id as "clusterId", expires_at as "expiresAt", seq::text`,
    [tx.now, siteId, tx.now],
  );
  await recordBanChanges(
    tx,
    rows.map((ban) => changeOf(ban, ban.seq, number)),
  );
  return rows.length;
}

function changeOf(ban: Pick<BanRow, 'id' | 'clusterId' | 'expiresAt'>, seq: string, { epoch }: BanNumber) {
  return {
    banId: ban.id,
    clusterId: ban.clusterId,
    keepUntil: afterAnHour(ban.expiresAt),
    number: { epoch, seq },
  };
}

function afterAnHour(time: Date): Date {
  return new Date(time.getTime() + HOUR_MS);
}
