// Bans. Active = not lifted and not expired. A row outlives its ban by an hour, for nodes that still hold a copy.
//
// Order inside a transaction: lockBanAddress (guard, address, site), everything that is checked, audit, and last the
// feed: nextBanSeq, the row with that number, recordBanChange. The feed's lock is held from there to the commit.
import type { Knex } from 'knex';
import type { Actor } from '../mixins/call.ts';
import type { Tx } from '../mixins/write.ts';
import { type BanNumber, nextBanSeq, recordBanChanges } from './feed.ts';
import { ONLINE_SECONDS } from './node-state.ts';

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

/** A ban with what lists show of it. */
export interface ListedBan extends BanRow {
  siteName: string | null;
  nodeName: string | null;
  unappliedNodes: number;
}

/** What a ban is the ban of: at most one active manual ban has it. */
export interface BanTarget {
  siteId: string | null;
  clusterId: string | null;
  cidr: string;
}

export interface BanFilter {
  scope?: string | undefined;
  siteId?: string | undefined;
  source?: string | undefined;
  /** Canonical CIDR: bans covering it or inside it. */
  cidr?: string | undefined;
  /** Only bans inside `cidr`. */
  inside?: boolean;
}

const HOUR_MS = 3_600_000;

const COLUMNS = `
  b.id, b.scope, b.site_id as "siteId", b.cluster_id as "clusterId", b.cidr::text, b.reason, b.source,
  b.node_id as "nodeId", b.trigger, b.created_by as "createdBy", b.distributed, b.created_at as "createdAt",
  b.expires_at as "expiresAt", b.seq::text`;

const UNAPPLIED = `
  (select count(*)::int from ban_unapplied u join node_state n on n.node_id = u.node_id
    where u.ban_id = b.id and n.last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS})) as "unappliedNodes"`;

const LISTED = `
  select ${COLUMNS}, s.name as "siteName", n.name as "nodeName", ${UNAPPLIED}`;
const NAMES = `
  left join site s on s.id = b.site_id
  left join node n on n.id = b.node_id`;

function conditions(filter: BanFilter, now: Date): { where: string; bindings: Record<string, string | Date> } {
  const clauses = ['lifted_at is null', 'expires_at > :now'];
  const bindings: Record<string, string | Date> = { now };
  const equal = (column: 'scope' | 'site_id' | 'source', value: string | undefined): void => {
    if (value === undefined) return;
    clauses.push(`${column} = :${column}`);
    bindings[column] = value;
  };
  equal('scope', filter.scope);
  equal('site_id', filter.siteId);
  equal('source', filter.source);
  if (filter.cidr !== undefined) {
    clauses.push(filter.inside ? 'cidr <<= :cidr::inet' : 'cidr && :cidr::inet');
    bindings.cidr = filter.cidr;
  }
  return { where: clauses.join(' and '), bindings };
}

/** Active bans, newest first. The page is cut before names and counts are looked up. */
export async function banPage(
  sql: Knex,
  filter: BanFilter,
  now: Date,
  limit: number,
  offset: number,
): Promise<ListedBan[]> {
  const { where, bindings } = conditions(filter, now);
  const { rows } = await sql.raw(
    `${LISTED} from (
       select * from ban where ${where} order by created_at desc, id desc limit :limit offset :offset
     ) b ${NAMES} order by b.created_at desc, b.id desc`,
    { ...bindings, limit, offset },
  );
  return rows;
}

export async function banCount(sql: Knex, filter: BanFilter, now: Date): Promise<number> {
  const { where, bindings } = conditions(filter, now);
  const { rows } = await sql.raw(`select count(*)::int as total from ban where ${where}`, bindings);
  return rows[0].total;
}

/** The active ban, locked until the end of the transaction. */
export async function lockActiveBan(sql: Knex, id: string, now: Date): Promise<BanRow | undefined> {
  const { rows } = await sql.raw(
    `select ${COLUMNS} from ban b where id = ? and lifted_at is null and expires_at > ? for update`,
    [id, now],
  );
  return rows[0];
}

/** The unlifted manual ban of the target, expired or not, locked when asked; at most one exists. */
export async function manualBanOf(
  sql: Knex,
  { siteId, cidr }: Pick<BanTarget, 'siteId' | 'cidr'>,
  { lock = true } = {},
): Promise<(BanRow & { unappliedNodes: number }) | undefined> {
  const { rows } = await sql.raw(
    `select ${COLUMNS}, ${UNAPPLIED} from ban b
      where source = 'manual' and coalesce(site_id, '') = ? and cidr = ?::cidr and lifted_at is null
      ${lock ? 'for update' : ''}`,
    [siteId ?? '', cidr],
  );
  return rows[0];
}

/** Gives an active manual ban another reason and expiry. */
export async function renewBan(
  tx: Tx,
  ban: BanRow,
  { reason, expiresAt }: { reason: string; expiresAt: Date },
): Promise<BanRow> {
  const number = await nextBanSeq(tx);
  await tx.sql.raw('update ban set reason = ?, expires_at = ?, seq = ? where id = ?', [
    reason,
    expiresAt,
    number.seq,
    ban.id,
  ]);
  // A node may still hold the earlier, later-ending copy.
  const keepUntil = afterAnHour(ban.expiresAt > expiresAt ? ban.expiresAt : expiresAt);
  await recordBanChanges(tx, [{ banId: ban.id, clusterId: ban.clusterId, keepUntil, number }]);
  return { ...ban, reason, expiresAt, seq: number.seq };
}

/**
 * Inserts a manual ban. An expired one of the target makes way; an automatic platform ban of the same addresses,
 * shared or not, is taken over: it is lifted and nodes get the manual one.
 */
export async function insertManualBan(
  tx: Tx,
  id: string,
  target: BanTarget,
  { reason, expiresAt }: { reason: string; expiresAt: Date },
): Promise<BanRow> {
  const number = await nextBanSeq(tx);
  const scope = target.siteId === null ? 'platform' : 'site';
  const { rows: lifted } = await tx.sql.raw<{ rows: { id: string; seq: string; expires_at: Date }[] }>(
    `with expired as (
       update ban set lifted_at = expires_at
        where source = 'manual' and coalesce(site_id, '') = :site and cidr = cast(:cidr as cidr) and lifted_at is null
     )
     update ban set lifted_at = :now, seq = nextval('ban_seq')
      where :scope = 'platform' and source = 'auto' and scope = 'platform' and cidr = cast(:cidr as cidr)
        and lifted_at is null
     returning id, seq::text, expires_at`,
    { site: target.siteId ?? '', cidr: target.cidr, now: tx.now, scope },
  );
  const { type, id: actorId, name } = tx.call.actor;
  const createdBy: Actor = { type, id: actorId, name };
  await tx.sql.raw(
    `insert into ban (id, scope, site_id, cluster_id, cidr, reason, source, created_by, created_at, expires_at, seq)
     values (?, ?, ?, ?, ?::cidr, ?, 'manual', ?, ?, ?, ?)`,
    [
      id,
      scope,
      target.siteId,
      target.clusterId,
      target.cidr,
      reason,
      JSON.stringify(createdBy),
      tx.now,
      expiresAt,
      number.seq,
    ] as never,
  );
  await recordBanChanges(tx, [
    ...lifted.map((ban) => changeOf({ id: ban.id, clusterId: null, expiresAt: ban.expires_at }, ban.seq, number)),
    changeOf({ id, clusterId: target.clusterId, expiresAt }, number.seq, number),
  ]);
  return {
    ...target,
    id,
    scope,
    reason,
    source: 'manual',
    nodeId: null,
    trigger: null,
    createdBy,
    distributed: true,
    createdAt: tx.now,
    expiresAt,
    seq: number.seq,
  };
}

/** Lifts one locked, active ban. */
export async function liftBan(tx: Tx, ban: BanRow): Promise<void> {
  const number = await nextBanSeq(tx);
  await tx.sql.raw('update ban set lifted_at = ?, seq = ? where id = ?', [tx.now, number.seq, ban.id]);
  await recordBanChanges(tx, [changeOf(ban, number.seq, number)]);
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
