// Active bans as lists show them.
import type { Knex } from 'knex';
import type { BAN_SORT } from '../../contract/resources/bans.ts';
import { orderBy, type Sort } from '../db/list-order.ts';
import { ONLINE_SECONDS } from '../nodes/node-state.ts';
import { BAN_COLUMNS, type BanRow } from './ban.ts';
import { OF_NO_GONE_SITE } from './gone-site.ts';

/** A ban with what lists show of it. */
export interface ListedBan extends BanRow {
  siteName: string | null;
  nodeName: string | null;
  unappliedNodes: number;
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

type BanSort = (typeof BAN_SORT)[number];
const SORT_COLUMNS: Readonly<Record<BanSort, string>> = { createdAt: 'b.created_at', expiresAt: 'b.expires_at' };

const UNAPPLIED = `
  (select count(*)::int from ban_unapplied u join node_state n on n.node_id = u.node_id
    where u.ban_id = b.id and n.last_seen_at > now() - make_interval(secs => ${ONLINE_SECONDS})) as "unappliedNodes"`;

const LISTED = `
  select ${BAN_COLUMNS}, s.name as "siteName", n.name as "nodeName", ${UNAPPLIED}`;
const NAMES = `
  left join site s on s.id = b.site_id
  left join node n on n.id = b.node_id`;

function conditions(filter: BanFilter, now: Date): { where: string; bindings: Record<string, string | Date> } {
  const clauses = ['lifted_at is null', 'expires_at > :now', OF_NO_GONE_SITE];
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

/** Active bans, newest first unless sorted otherwise. The page is cut before names and counts are looked up. */
export async function banPage(
  sql: Knex,
  filter: BanFilter & { sort?: Sort<BanSort> | undefined },
  now: Date,
  limit: number,
  offset: number,
): Promise<ListedBan[]> {
  const { where, bindings } = conditions(filter, now);
  const order = orderBy(filter.sort ?? '-createdAt', SORT_COLUMNS, 'b.id');
  const { rows } = await sql.raw(
    `${LISTED} from (select * from ban b where ${where} ${order} limit :limit offset :offset) b ${NAMES} ${order}`,
    { ...bindings, limit, offset },
  );
  return rows;
}

export async function banCount(sql: Knex, filter: BanFilter, now: Date): Promise<number> {
  const { where, bindings } = conditions(filter, now);
  const { rows } = await sql.raw(`select count(*)::int as total from ban b where ${where}`, bindings);
  return rows[0].total;
}
