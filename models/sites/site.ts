// Sites and their domains. Origins and settings are the objects of the contract, complete: defaults are filled in when
// they are saved, so that a later default changes no saved site.
import { domainToUnicode } from 'node:url';
import type { Knex } from 'knex';
import type { CacheRule, CacheSettings } from '../../contract/resources/site-cache.ts';
import type { ContentSettings, Origin, OriginSettings } from '../../contract/resources/site-origins.ts';
import type { SITE_SORT, SiteLevelFilter, SiteState } from '../../contract/resources/sites.ts';
import { type Domain, type DomainForm, formatDomain } from '../../contract/scalars/domain.ts';
import { originLiteral } from '../../contract/scalars/origin-address.ts';
import { DEFAULT_CACHE } from '../cache/site-cache.entry.ts';
import { orderBy, type Sort } from '../db/list-order.ts';
import { prepared } from '../db/named-statement.ts';
import { searchPattern } from '../db/search-pattern.ts';
import type { ClusterSpan } from '../overview/overview-nodes.ts';
import { inState, spansJson } from '../overview/overview-sites.ts';
import { ABOVE, levelCondition } from '../security/site-level.ts';
import { ORIGIN_SETTINGS_BEFORE } from './site.entry.ts';
import { CHARSET_BEFORE } from './site-content.entry.ts';
import type { SitePorts } from './site-ports.ts';
import { REQUESTS_BEFORE } from './site-requests.entry.ts';

/** What a site is, beside who serves it and since when. */
export interface SiteContent {
  name: string;
  domains: Domain[];
  origins: Origin[];
  originSettings: OriginSettings;
  contentSettings: ContentSettings;
  ports: SitePorts;
}

export interface SiteRow extends SiteContent {
  id: string;
  clusterId: string;
  clusterName: string;
  enabled: boolean;
  cacheRules: CacheRule[];
  cacheSettings: CacheSettings;
  createdAt: Date;
  updatedAt: Date;
}

export interface SiteFilter {
  search?: string | undefined;
  clusterId?: string | undefined;
  /** What the nodes of the clusters run, and the state that it makes of a site. */
  state?: { is: SiteState; spans: readonly ClusterSpan[] } | undefined;
  level?: SiteLevelFilter | undefined;
}

interface Conditions {
  /** Common table expressions that the condition reads. */
  tables: string[];
  /** Empty, or `where …` over `site`. */
  where: string;
  bindings: Record<string, string | number>;
}

type SiteSort = (typeof SITE_SORT)[number];

// Ids are in the order of creation.
const SORT_COLUMNS: Readonly<Record<SiteSort, string>> = {
  name: 'lower(s.name)',
  createdAt: 's.id',
  updatedAt: 's.updated_at',
};

interface DomainRow {
  form: DomainForm;
  name: string;
}

const asJson = (value: object) => `'${JSON.stringify(value)}'::jsonb`;

/** Columns of a {@link SiteRow} over {@link SITE_JOINS}. */
export const SITE_COLUMNS = `
  s.id, s.cluster_id as "clusterId", c.name as "clusterName", s.name, s.enabled, s.ports, s.origins,
  ${asJson(ORIGIN_SETTINGS_BEFORE)} || s.origin_settings as "originSettings",
  ${asJson({ ...REQUESTS_BEFORE, ...CHARSET_BEFORE })} || s.content_settings as "contentSettings",
  coalesce(k.rules, '[]') as "cacheRules",
  ${asJson(DEFAULT_CACHE.cacheSettings)} || coalesce(k.settings, '{}') || jsonb_build_object('purgeMethod', jsonb_build_object(
    'enabled', coalesce(p.enabled, false), 'keySet', p.key_digest is not null)) as "cacheSettings",
  s.created_at as "createdAt", s.updated_at as "updatedAt", d.domains`;
export const SITE_JOINS = `
  join cluster c on c.id = s.cluster_id
  left join site_cache k on k.site_id = s.id
  left join site_purge_method p on p.site_id = s.id
  cross join lateral (
    select jsonb_agg(jsonb_build_object('form', form, 'name', name) order by position) as domains
      from site_domain where site_id = s.id) d`;

const LOCK = `select ${SITE_COLUMNS}, (select updated_at from site where id = s.id) as seen
  from site s ${SITE_JOINS} where s.id = ? for update of s`;

function conditions({ search, clusterId, state, level }: SiteFilter): Conditions {
  const clauses: string[] = [];
  const tables: string[] = [];
  const bindings: Conditions['bindings'] = {};
  const text = search?.trim().toLowerCase();
  if (text) {
    clauses.push('search_text like :pattern');
    bindings.pattern = searchPattern(text);
  }
  if (clusterId !== undefined) {
    clauses.push('cluster_id = :clusterId');
    bindings.clusterId = clusterId;
  }
  if (state !== undefined) {
    tables.push(inState(state.is));
    clauses.push('id in (select id from in_state)');
    bindings.spans = spansJson(state.spans);
  }
  if (level !== undefined) {
    tables.push(`above as materialized (${ABOVE})`);
    clauses.push(levelCondition(level));
  }
  return { tables, where: clauses.length > 0 ? `where ${clauses.join(' and ')}` : '', bindings };
}

/** Sites, newest first unless sorted otherwise. The page is cut before anything is joined: its cost follows the page. */
export async function sitePage(
  sql: Knex,
  filter: SiteFilter & { sort?: Sort<SiteSort> | undefined },
  limit: number,
  offset: number,
): Promise<SiteRow[]> {
  const { tables, where, bindings } = conditions(filter);
  const order = orderBy(filter.sort ?? '-createdAt', SORT_COLUMNS, 's.id');
  // A scan in the order of the list would read every site for a rare match.
  const source =
    filter.search?.trim() || tables.length > 0
      ? `(with ${[...tables, ''].join(', ')}hit as materialized (select id, name, updated_at from site ${where})
        select site.* from (select id from hit s ${order} limit :limit offset :offset) h join site using (id))`
      : `(select * from site s ${where} ${order} limit :limit offset :offset)`;
  const { rows } = await sql.raw(`select ${SITE_COLUMNS} from ${source} s ${SITE_JOINS} ${order}`, {
    ...bindings,
    limit,
    offset,
  });
  return rows;
}

export async function siteCount(sql: Knex, filter: SiteFilter): Promise<number> {
  const { tables, where, bindings } = conditions(filter);
  const { rows } = await sql.raw(
    `${tables.length > 0 ? `with ${tables.join(', ')} ` : ''}select count(*)::int as total from site ${where}`,
    bindings,
  );
  return rows[0].total;
}

export async function siteById(sql: Knex, id: string): Promise<SiteRow | undefined> {
  const { rows } = await sql.raw(`select ${SITE_COLUMNS} from site s ${SITE_JOINS} where s.id = ?`, [id]);
  return rows[0];
}

/** The cluster that serves a site; it never changes. */
export async function clusterOfSite(sql: Knex, id: string): Promise<string | undefined> {
  const text = 'select cluster_id as "clusterId" from site where id = ?';
  const [row] = await prepared<{ clusterId: string }>(sql, 'cluster-of-site', { text, bindings: [id] });
  return row?.clusterId;
}

/** The cluster of a new site: the one asked for, else the oldest; undefined when there is none. */
export async function clusterForSite(sql: Knex, asked: string | undefined): Promise<string | undefined> {
  const query =
    asked === undefined ? sql('cluster').orderBy(['created_at', 'id']) : sql('cluster').where({ id: asked });
  return (await query.first('id'))?.id;
}

/**
 * The site, locked against other writers and deletion until the end of the transaction. Whoever waited for the lock gets
 * the row as it is now, and what is joined to it as it was: then, and only then, it is read once more.
 */
export async function lockSite(sql: Knex, id: string): Promise<SiteRow | undefined> {
  const [row] = await prepared<SiteRow & { seen: Date | null }>(sql, 'lock-site', { text: LOCK, bindings: [id] });
  if (!row) return undefined;
  const { seen, ...site } = row;
  return seen?.getTime() === site.updatedAt.getTime() ? site : siteById(sql, id);
}

/** Which of the ids are sites of the cluster. */
export async function sitesOfCluster(sql: Knex, clusterId: string, ids: readonly string[]): Promise<Set<string>> {
  const { rows } = await sql.raw<{ rows: { id: string }[] }>(
    'select id from site where id = any(?) and cluster_id = ?',
    [ids as never, clusterId],
  );
  return new Set(rows.map(({ id }) => id));
}

/** Locks the sites as {@link lockSite} does, one after the other by id; those that are gone are passed over. */
export async function lockSites(sql: Knex, ids: readonly string[]): Promise<void> {
  await sql.raw('select from site where id = any(?) order by id for update', [ids as never]);
}

/** Inserts an enabled site without domains, where its origins are, and its name for revisions, which outlive it; answers its id. */
export async function insertSite(sql: Knex, clusterId: string, content: SiteContent, now: Date): Promise<string> {
  const { rows } = await sql.raw(
    `with made as (
       insert into site (cluster_id, name, origins, origin_settings, content_settings, ports, search_text,
         created_at, updated_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?) returning id
     ), located as (
       insert into site_origin_address (site_id, address) select id, unnest(?::inet[]) from made
     ), labelled as (
       insert into site_label (site_id, name) select id, ? from made
     )
     select id from made`,
    [
      clusterId,
      ...contentBindings(content),
      searchText(content),
      now,
      now,
      originAddresses(content) as never,
      content.name,
    ],
  );
  return rows[0].id;
}

export async function updateSite(sql: Knex, id: string, content: SiteContent, updatedAt: Date): Promise<void> {
  await prepared(sql, 'update-site', {
    text: `with has as (select unnest(?::inet[]) as address),
     gone as (
       delete from site_origin_address where site_id = ? and address not in (select address from has)
     ), located as (
       insert into site_origin_address (site_id, address) select ?, address from has on conflict do nothing
     ), labelled as (
       insert into site_label (site_id, name) values (?, ?) on conflict (site_id) do update set name = excluded.name
         where site_label.name <> excluded.name
     )
     update site set name = ?, origins = ?, origin_settings = ?, content_settings = ?, ports = ?, search_text = ?, updated_at = ?
      where id = ?`,
    bindings: [
      originAddresses(content),
      id,
      id,
      id,
      content.name,
      ...contentBindings(content),
      searchText(content),
      updatedAt,
      id,
    ],
  });
}

export async function setSiteEnabled(sql: Knex, id: string, enabled: boolean, updatedAt: Date): Promise<void> {
  await sql.raw('update site set enabled = ?, updated_at = ? where id = ?', [enabled, updatedAt, id]);
}

export async function deleteSite(sql: Knex, id: string): Promise<void> {
  await sql.raw('delete from site where id = ?', [id]);
}

/**
 * Gives the site exactly these domains; answers those that another site has, in which case the transaction must be
 * rolled back. Rows go in one order everywhere, so that two writers wait for each other instead of deadlocking.
 */
export async function replaceDomains(sql: Knex, siteId: string, domains: readonly Domain[]): Promise<Domain[]> {
  await sql.raw('delete from site_domain where site_id = ?', [siteId]);
  const forms = domains.map(({ form }) => form) as never;
  const names = domains.map(({ name }) => name) as never;
  const { rows } = await sql.raw<{ rows: DomainRow[] }>(
    `insert into site_domain (site_id, position, form, name)
     select ?, d.position - 1, d.form, d.name from unnest(?::text[], ?::text[]) with ordinality d(form, name, position)
      order by d.form, d.name
     on conflict on constraint site_domain_unique do nothing returning form, name`,
    [siteId, forms, names],
  );
  const inserted = new Set(rows.map(formatDomain));
  return domains.filter((domain) => !inserted.has(formatDomain(domain)));
}

/** Id of an enabled site of the cluster, kept from deletion until the end of the transaction; undefined without one. */
export async function keepEnabledSite(sql: Knex, clusterId: string, id: string): Promise<string | undefined> {
  const { rows } = await sql.raw('select id from site where id = ? and cluster_id = ? and enabled for key share', [
    id,
    clusterId,
  ]);
  return rows[0]?.id;
}

/** Keeps those of the sites that the cluster has from deletion until the end of the transaction. */
export async function keepSites(sql: Knex, clusterId: string, ids: ReadonlySet<string>): Promise<void> {
  if (ids.size === 0) return;
  const bindings = [clusterId, [...ids]];
  await sql.raw('select from site where cluster_id = ? and id = any(?) order by id for key share', bindings as never);
}

function contentBindings({ name, origins, originSettings, contentSettings, ports }: SiteContent): string[] {
  return [name, ...[origins, originSettings, contentSettings, ports].map((part) => JSON.stringify(part))];
}

/** Addresses that origins are given by, each once; host names have none here. */
function originAddresses({ origins }: SiteContent): string[] {
  return [...new Set(origins.flatMap(({ address }) => originLiteral(address) ?? []))];
}

/** What search looks through: lower case, one line per name. */
function searchText({ name, domains }: SiteContent): string {
  const texts = domains.flatMap((domain) => {
    const text = formatDomain(domain);
    // People search for what they read, not for punycode.
    return text.includes('xn--') ? [text, domainToUnicode(domain.name)] : [text];
  });
  return [name, ...texts].join('\n').toLowerCase();
}

/** Names of sites by their ids, in the same order; also of those that are gone. */
export async function siteLabels(sql: Knex, ids: readonly string[]): Promise<{ id: string; name: string }[]> {
  if (ids.length === 0) return [];
  const { rows } = await sql.raw<{ rows: { id: string; name: string }[] }>(
    `select o.id, coalesce(l.name, o.id) as name from unnest(?::text[]) with ordinality as o(id, place)
       left join site_label l on l.site_id = o.id order by o.place`,
    [ids as never],
  );
  return rows;
}
