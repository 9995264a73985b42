// Bans. Active = not lifted and not expired. A row outlives its ban by an hour, for nodes that still hold a copy.
//
// Order inside a transaction: the locks of rows (checkBans, lockActiveBan), the audit entries, and last one of the writes,
// because each takes the feed's lock and every other ban of the console waits from there to the commit. Whoever has that
// lock waits for no row. Numbers are taken under it.
import type { Knex } from 'knex';
import { DEFAULT_BAN_SETTINGS } from '../../contract/resources/bans.ts';
import type { Actor } from '../../runtime/call.ts';
import type { Tx } from '../../runtime/write.ts';
import { type AuditRecord, auditArguments } from '../audit/audit-entry.ts';
import { prepared } from '../db/named-statement.ts';
import type { BanSettings } from './ban-setting.ts';
import { OF_NO_GONE_SITE } from './gone-site.ts';

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

/** Columns of a {@link BanRow} of `ban b`. */
export const BAN_COLUMNS = `
  b.id, b.scope, b.site_id as "siteId", b.cluster_id as "clusterId", b.cidr::text, b.reason, b.source,
  b.node_id as "nodeId", b.trigger, b.created_by as "createdBy", b.distributed, b.created_at as "createdAt",
  b.expires_at as "expiresAt", b.seq::text`;

/** The active ban, locked until the end of the transaction. */
export async function lockActiveBan(sql: Knex, id: string, now: Date): Promise<BanRow | undefined> {
  const { rows } = await sql.raw(
    `select ${BAN_COLUMNS} from ban b
      where id = ? and lifted_at is null and expires_at > ? and ${OF_NO_GONE_SITE} for update of b`,
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

/**
 * Locks the addresses, and what bans are checked against, and reads what has to be judged of each. Without patience it
 * fails after 100 ms instead of 2 s when one of them is locked.
 */
export async function checkBans(
  sql: Knex,
  targets: readonly Pick<BanTarget, 'siteId' | 'cidr'>[],
  now: Date,
  patient: boolean,
): Promise<BanCheck[]> {
  const rows = await prepared<{ found: BanCheck }>(sql, 'ban-check-all', {
    text: 'select ban_check_all(cast(? as text[]), cast(? as cidr[]), ?, ?) as found',
    bindings: [targets.map(({ siteId }) => siteId), targets.map(({ cidr }) => cidr), now, patient],
  });
  return rows.map(({ found }) => {
    const before = found.before && { ...found.before, createdAt: new Date(found.before.createdAt) };
    return { ...found, before, settings: { ...DEFAULT_BAN_SETTINGS, ...found.settings } };
  });
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

/** A checked manual ban to write. */
export interface BanWrite extends BanTarget, BanEnd {
  id: string;
  /** The ban is active and gets another reason and end. */
  renews: boolean;
}

/**
 * Inserts and renews manual bans, the ban of each transaction in turn; answers their numbers. An expired ban of an
 * address makes way; an automatic platform ban of the same addresses, shared or not, is taken over: it is lifted and
 * nodes get the manual one. Writes the audit entries, too.
 */
export async function writeManualBans(
  sql: Knex,
  now: Date,
  bans: readonly [tx: Tx, ban: BanWrite][],
  records: readonly [tx: Tx, record: AuditRecord][] = [],
): Promise<string[]> {
  if (bans.length === 0) return [];
  const rows = bans.map(([tx, { id, renews, siteId, clusterId, cidr, reason, expiresAt }]) => ({
    id,
    renews,
    site: siteId,
    cluster: clusterId,
    cidr,
    reason,
    created_by: creatorOf(tx),
    expires_at: expiresAt,
  }));
  const written = await prepared<WrittenNumber>(sql, 'ban-write-all', {
    text: 'select epoch::text, seq::text from ban_write_all_recorded(cast(? as jsonb), ?, ?, ?)',
    bindings: [JSON.stringify(rows), now, ...auditArguments(records)],
  });
  return written.map((number, index) => published(bans[index]![0], number));
}

/** Who a manual ban made in the transaction is by. */
export function creatorOf(tx: Tx): Actor {
  const { type, id, name } = tx.call.actor;
  return { type, id, name };
}

/** Lifts one locked, active ban. */
export async function liftBan(tx: Tx, id: string): Promise<void> {
  const { rows } = await tx.sql.raw<{ rows: WrittenNumber[] }>('select epoch::text, seq::text from ban_lift(?, ?)', [
    id,
    tx.now,
  ]);
  published(tx, rows[0]!);
}

interface WrittenNumber {
  epoch: string;
  seq: string;
}

/** Tells the call that its change has this number. */
function published(tx: Tx, { epoch, seq }: WrittenNumber): string {
  tx.wake = true;
  tx.call.changes.push(`ban=${epoch}:${seq}`);
  return seq;
}
