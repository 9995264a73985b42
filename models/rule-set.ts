// Rules of sites and of the platform, each list with the entry that it was compiled to.
import type { Knex } from 'knex';
import type { Rule } from '../contract/scalars/rule.ts';
import type { CompiledEntry } from './entries/kind.ts';
import type { ListIds } from './entries/rule-message.ts';
import { groupsOf, RULES_COMPILER_VERSION, recompileRules } from './entries/rules.ts';
import { ipListIds } from './ip-list.ts';
import type { IpListUsers } from './ip-list-user.ts';

/** Id of the rules of the platform. */
export const PLATFORM = '';

export interface RuleSet {
  rules: Rule[];
  updatedAt: Date;
}

/** The rules of a site, and what of the site they rest on. */
export interface SiteRuleSet extends RuleSet {
  siteId: string;
  clusterId: string;
  siteName: string;
  /** Groups of origins that the site has, beside the default one. */
  groups: ReadonlySet<string>;
}

/** A rule that names IP lists. */
export interface ListUse {
  position: number;
  rule: Rule;
  listIds: readonly string[];
}

interface SiteRow {
  siteId: string;
  clusterId: string;
  siteName: string;
  origins: { group: string }[];
  rules: Rule[];
  updatedAt: Date;
}

/** Undefined when there is no such site. */
export async function readSiteRules(sql: Knex, siteId: string): Promise<SiteRuleSet | undefined> {
  const { rows } = await sql.raw<{ rows: SiteRow[] }>(
    `select s.id as "siteId", s.cluster_id as "clusterId", s.name as "siteName", s.origins,
            coalesce(r.rules, '[]') as rules, coalesce(r.updated_at, s.created_at) as "updatedAt"
       from site s left join rule_set r on r.id = s.id where s.id = ?`,
    [siteId],
  );
  const [row] = rows;
  if (!row) return undefined;
  const { origins, ...rest } = row;
  return { ...rest, groups: new Set(origins.map(({ group }) => group).filter((group) => group !== '')) };
}

/** As {@link readSiteRules}, with the site locked as lockSite does (site.ts). */
export async function lockSiteRules(sql: Knex, siteId: string): Promise<SiteRuleSet | undefined> {
  await sql.raw('select from site where id = ? for update', [siteId]);
  // Only a statement that starts after the lock is had sees what the holder before committed.
  return readSiteRules(sql, siteId);
}

export async function readPlatformRules(sql: Knex): Promise<RuleSet> {
  const { rows } = await sql.raw('select rules, updated_at as "updatedAt" from rule_set where id = ?', [PLATFORM]);
  return rows[0];
}

/** As {@link readPlatformRules}; writers wait for each other. */
export async function lockPlatformRules(sql: Knex): Promise<RuleSet> {
  const { rows } = await sql.raw('select rules, updated_at as "updatedAt" from rule_set where id = ? for update', [
    PLATFORM,
  ]);
  return rows[0];
}

/** Saves the rules of a site, or with {@link PLATFORM} and without a cluster those of the platform. */
export async function writeRuleSet(
  sql: Knex,
  { id, clusterId }: { id: string; clusterId: string | null },
  { rules, updatedAt }: RuleSet,
  compiled: CompiledEntry | null,
  uses: readonly ListUse[],
): Promise<void> {
  await sql.raw(
    `insert into rule_set (id, cluster_id, rules, body, features, refs, compiler_version, origin_groups, updated_at)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?)
     on conflict (id) do update set rules = excluded.rules, body = excluded.body, features = excluded.features,
       refs = excluded.refs, compiler_version = excluded.compiler_version, origin_groups = excluded.origin_groups,
       updated_at = excluded.updated_at`,
    [
      id,
      clusterId as never,
      JSON.stringify(rules),
      (compiled ? Buffer.from(compiled.body) : null) as never,
      (compiled?.features ?? []) as never,
      (compiled?.refs ?? []) as never,
      RULES_COMPILER_VERSION,
      groupsOf(rules) as never,
      updatedAt,
    ],
  );
  await sql.raw('delete from rule_ip_list where rule_set_id = ?', [id]);
  const rows = uses.flatMap(({ position, rule, listIds }) => listIds.map((list) => ({ position, rule, list })));
  if (rows.length === 0) return;
  await sql.raw(
    `insert into rule_ip_list (ip_list_id, rule_set_id, position, rule_id, name)
     select list, ?, position, rule, name from unnest(?::text[], ?::smallint[], ?::text[], ?::text[])
       as uses(list, position, rule, name)`,
    [
      id,
      rows.map(({ list }) => list) as never,
      rows.map(({ position }) => position) as never,
      rows.map(({ rule }) => rule.id) as never,
      rows.map(({ rule }) => rule.name) as never,
    ],
  );
}

interface StoredRow {
  id: string;
  rules: Rule[];
  body: Buffer | null;
  features: string[];
  refs: string[];
  version: number;
}

/** The entries of the rules by their ids; those without an enabled rule have none. */
export async function compiledRuleSets(sql: Knex, ids: readonly string[]): Promise<Map<string, CompiledEntry>> {
  const { rows } = await sql.raw<{ rows: StoredRow[] }>(
    'select id, rules, body, features, refs, compiler_version as version from rule_set where id = any(?)',
    [ids as never],
  );
  const stale = rows.some(({ version }) => version !== RULES_COMPILER_VERSION);
  const lists: ListIds = stale ? await ipListIds(sql) : new Map();
  return new Map(
    rows.flatMap((row): [string, CompiledEntry][] => {
      const entry = row.version === RULES_COMPILER_VERSION ? storedEntry(row) : recompiled(row, lists);
      return entry ? [[row.id, entry]] : [];
    }),
  );
}

function storedEntry({ rules, body, features, refs }: StoredRow): CompiledEntry | null {
  return body && { body, features, refs, settings: { rules: rules.filter(({ enabled }) => enabled) } };
}

function recompiled(row: StoredRow, lists: ListIds): CompiledEntry | null {
  return recompileRules(row.rules, row.id === PLATFORM ? null : row.id, lists, storedEntry(row)).entry;
}

/** Ids of the sites of a cluster that have saved rules, in their order. */
export async function sitesWithRules(sql: Knex, clusterId: string, after: string, limit: number): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { id: string }[] }>(
    'select site_id as id from rule_set where cluster_id = ? and site_id > ? order by site_id limit ?',
    [clusterId, after, limit],
  );
  return rows.map(({ id }) => id);
}

/** Rules that name an IP list, those of the platform first. */
export const ruleListUsers: IpListUsers = {
  async count(sql, ipListId) {
    const { rows } = await sql.raw('select count(*)::int as count from rule_ip_list where ip_list_id = ?', [ipListId]);
    return rows[0].count;
  },
  async page(sql, ipListId, limit, offset) {
    const { rows } = await sql.raw<{
      rows: { id: string; name: string; siteId: string | null; siteName: string | null }[];
    }>(
      `select u.rule_id as id, u.name, s.id as "siteId", s.name as "siteName"
         from (select * from rule_ip_list where ip_list_id = ? order by rule_set_id, position limit ? offset ?) u
         left join site s on s.id = u.rule_set_id order by u.rule_set_id, u.position`,
      [ipListId, limit, offset],
    );
    return rows.map(({ id, name, siteId, siteName }) => ({
      kind: siteId === null ? 'platform_rule' : 'site_rule',
      id,
      name,
      site: siteId === null ? null : { id: siteId, name: siteName! },
    }));
  },
};
