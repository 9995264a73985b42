// Rules of sites and of the platform, each list with the entry that it was compiled to.
import type { Knex } from 'knex';
import { MAX_NAMED } from '../../contract/resources/overview.ts';
import type { Rule } from '../../contract/scalars/rule.ts';
import { MAX_SUBJECTS } from '../alerts/alert.ts';
import type { CompiledEntry } from '../config/entry-kind.ts';
import { type BrokenRule, groupsOf, RULES_COMPILER_VERSION, recompileRules } from './compiled-rules.ts';
import { ipListIds } from './ip-list.ts';
import type { ListIds } from './rule-message.ts';

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

/** What rules were compiled to. */
export interface StoredEntry {
  entry: CompiledEntry | null;
  /** Ids of enabled rules that do not compile. */
  broken: readonly string[];
}

/** Saves the rules of a site, or with {@link PLATFORM} and without a cluster those of the platform. */
export async function writeRuleSet(
  sql: Knex,
  { id, clusterId }: { id: string; clusterId: string | null },
  { rules, updatedAt }: RuleSet,
  compiled: StoredEntry,
  uses: readonly ListUse[],
): Promise<void> {
  await sql.raw(
    `insert into rule_set
       (id, cluster_id, rules, origin_groups, updated_at, body, features, refs, broken, compiler_version)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     on conflict (id) do update set rules = excluded.rules, origin_groups = excluded.origin_groups,
       updated_at = excluded.updated_at, body = excluded.body, features = excluded.features, refs = excluded.refs,
       broken = excluded.broken, compiler_version = excluded.compiler_version`,
    [id, clusterId as never, JSON.stringify(rules), groupsOf(rules) as never, updatedAt, ...entryBindings(compiled)],
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

function entryBindings({ entry, broken }: StoredEntry): never[] {
  const body = entry ? Buffer.from(entry.body) : null;
  return [body, entry?.features ?? [], entry?.refs ?? [], broken, RULES_COMPILER_VERSION] as never[];
}

/** Groups of origins that rules of the site name, enabled or not, and the rules that do. */
export async function rulesWithGroups(
  sql: Knex,
  siteId: string,
  groups: readonly string[],
): Promise<{ id: string; name: string; group: string }[]> {
  const { rows } = await sql.raw<{ rows: { id: string; name: string; group: string }[] }>(
    `select rule->>'id' as id, rule->>'name' as name, rule->'action'->>'originGroup' as "group"
       from rule_set r cross join lateral jsonb_array_elements(r.rules) with ordinality as list(rule, place)
      where r.id = ? and r.origin_groups && ?::text[] and rule->'action'->>'originGroup' = any(?::text[])
      order by place`,
    [siteId, groups as never, groups as never],
  );
  return rows;
}

/** Rules as they are stored, with what was compiled of them. */
export interface StoredRuleSet {
  id: string;
  rules: Rule[];
  body: Buffer | null;
  features: string[];
  refs: string[];
  version: number;
}

/** The entries of the rules by their ids; those without an enabled rule have none. */
export async function compiledRuleSets(sql: Knex, ids: readonly string[]): Promise<Map<string, CompiledEntry>> {
  const { rows } = await sql.raw<{ rows: StoredRuleSet[] }>(
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

/** The entry of stored rules, null without an enabled one. */
export async function entryOfRules(sql: Knex, row: StoredRuleSet): Promise<CompiledEntry | null> {
  return row.version === RULES_COMPILER_VERSION ? storedEntry(row) : recompiled(row, await ipListIds(sql));
}

function storedEntry({ rules, body, features, refs }: StoredRuleSet): CompiledEntry | null {
  return body && { body, features, refs, settings: { rules: rules.filter(({ enabled }) => enabled) } };
}

function recompiled(row: StoredRuleSet, lists: ListIds): CompiledEntry | null {
  return recompileRules(row.rules, siteOf(row.id), lists, storedEntry(row)).entry;
}

function siteOf(id: string): string | null {
  return id === PLATFORM ? null : id;
}

/** Rules that an earlier version of the compiler has compiled, by id after the given one, at most so many. */
export async function staleRuleSets(
  sql: Knex,
  after: string | null,
  limit: number,
): Promise<{ id: string; clusterId: string | null }[]> {
  const { rows } = await sql.raw<{ rows: { id: string; clusterId: string | null }[] }>(
    `select id, cluster_id as "clusterId" from rule_set
      where compiler_version < ? and (?::text is null or id > ?) order by id limit ?`,
    [RULES_COMPILER_VERSION, after as never, after as never, limit],
  );
  return rows;
}

/**
 * The first enabled rule that does not compile any more, with its place among the rules; undefined when all compile.
 * `broken`: a rule did not compile when the rules were compiled last.
 */
export async function firstBrokenRule(
  sql: Knex,
  row: StoredRuleSet & { broken: boolean },
): Promise<(BrokenRule & { index: number }) | undefined> {
  if (row.version === RULES_COMPILER_VERSION && !row.broken) return undefined;
  const [first] = recompileRules(row.rules, siteOf(row.id), await ipListIds(sql), storedEntry(row)).broken;
  return first && { ...first, index: row.rules.findIndex((rule) => rule.id === first.rule.id) };
}

/**
 * Compiles the stored rules anew, and keeps of those that do not compile any more what they were compiled to last. Returns
 * the entry, null without an enabled rule; undefined when another process was faster.
 */
export async function recompileRuleSet(sql: Knex, id: string): Promise<CompiledEntry | null | undefined> {
  const { rows } = await sql.raw<{ rows: StoredRuleSet[] }>(
    `select id, rules, body, features, refs, compiler_version as version from rule_set
      where id = ? and compiler_version < ? for update`,
    [id, RULES_COMPILER_VERSION],
  );
  const [row] = rows;
  if (!row) return undefined;
  const { entry, broken } = recompileRules(row.rules, siteOf(id), await ipListIds(sql), storedEntry(row));
  await sql.raw('update rule_set set body = ?, features = ?, refs = ?, broken = ?, compiler_version = ? where id = ?', [
    ...entryBindings({ entry, broken: broken.map(({ rule }) => rule.id) }),
    id,
  ]);
  return entry;
}

export interface BrokenRules {
  /** Rules of the platform. */
  ofPlatform: number;
  /** Enabled sites. */
  sites: number;
  /** The first of these sites. */
  named: { id: string; name: string }[];
  /** Ids of these sites, one more than `MAX_SUBJECTS` at most. */
  subjects: string[];
}

/** Rules that do not compile any more. */
export async function brokenRules(sql: Knex, clusterId: string | null): Promise<BrokenRules> {
  const { rows } = await sql.raw<{ rows: { id: string; name: string | null; rules: number; sites: number }[] }>(
    `select r.id, s.name, cardinality(r.broken) as rules, count(s.id) over ()::int as sites
       from rule_set r left join site s on s.id = r.site_id
      where r.broken <> '{}' and (s.id is null or s.enabled) and (?::text is null or s.id is null or r.cluster_id = ?)
      order by s.id nulls first limit ?`,
    [clusterId as never, clusterId as never, MAX_SUBJECTS + 2],
  );
  const ofSites = rows.flatMap(({ id, name }) => (name === null ? [] : [{ id, name }])).slice(0, MAX_SUBJECTS + 1);
  return {
    ofPlatform: rows.find(({ id }) => id === PLATFORM)?.rules ?? 0,
    sites: rows[0]?.sites ?? 0,
    named: ofSites.slice(0, MAX_NAMED),
    subjects: ofSites.map(({ id }) => id),
  };
}

/** Ids of the sites of a cluster that have saved rules, in their order. */
export async function sitesWithRules(sql: Knex, clusterId: string, after: string, limit: number): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { id: string }[] }>(
    'select site_id as id from rule_set where cluster_id = ? and site_id > ? order by site_id limit ?',
    [clusterId, after, limit],
  );
  return rows.map(({ id }) => id);
}

/** Groups of origins that enabled rules of a site choose. */
export async function chosenGroups(sql: Knex, siteId: string): Promise<Set<string>> {
  const { rows } = await sql.raw<{ rows: { name: string }[] }>(
    `select distinct rule->'action'->>'originGroup' as name from rule_set, jsonb_array_elements(rules) as rule
      where id = ? and (rule->>'enabled')::boolean and rule->'action'->>'kind' = 'origin'`,
    [siteId],
  );
  return new Set(rows.map(({ name }) => name));
}
