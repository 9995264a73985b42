import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { ruleTrial } from '../../contract/resources/rule-trial.ts';
import { formatAddress } from '../../contract/scalars/cidr.ts';
import { formatRedirectSource, sourceOfKey } from '../../contract/scalars/redirect-source.ts';
import type { Rule, RuleInput } from '../../contract/scalars/rule.ts';
import type { RuleTrace } from '../../contract/scalars/rule-trace.ts';
import { listsOf } from '../../models/rules/compiled-rules.ts';
import { ipListNames } from '../../models/rules/ip-list.ts';
import { type CheckedRule, checkRule } from '../../models/rules/rule-message.ts';
import { readPlatformRules, readSiteRules } from '../../models/rules/rule-set.ts';
import { listsOf as listsOfAddress } from '../../models/security/address-dossier.ts';
import { bulkRedirectsByKey } from '../../models/sites/bulk-redirect.ts';
import { siteById } from '../../models/sites/site.ts';
import { locate } from '../../runtime/geoip.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { checkRules } from './check-rules.ts';
import { type Bytes, bytesOf } from './evaluate/bytes.ts';
import { type BrokenRule, runRule } from './run/from-rule.ts';
import type { BulkRedirect, RunRequest, RunSurroundings } from './run/request.ts';
import { bulkRedirectKeys, runRules } from './run/run.ts';
import { siteHttps } from './site-https.ts';
import { runRequest, withNormalPath } from './tried-request.ts';

type Sql = Runtime['pools']['api'];
type Tried = Input<typeof ruleTrial.try>;

const LISTS_IN_REFUSAL = 5;

/** A request that rules were run over. */
export interface RunOfRules {
  readonly request: RunRequest;
  readonly trace: RuleTrace;
  readonly inList: RunSurroundings['inList'];
}

/** Runs the rules of a site, or those that are given, over a made-up request. Throws the contract's errors. */
export async function tryRules(runtime: Runtime, input: Tried): Promise<Output<typeof ruleTrial.try>> {
  return (await runTried(runtime, input)).trace;
}

/** As {@link tryRules}, with what was made of the request. */
export async function runTried(runtime: Runtime, input: Tried): Promise<RunOfRules> {
  const sql = runtime.pools.api;
  const site = (await siteById(sql, input.id)) ?? fail('SITE_NOT_FOUND');
  const saved = (await readSiteRules(sql, input.id)) ?? fail('SITE_NOT_FOUND');
  const sent = await located(runtime, runRequest(input.request, input.response, new Date()));
  const request = site.contentSettings.pathNormalization ? withNormalPath(sent) : sent;
  const platform = input.platformRules
    ? draft(input.platformRules, null, 'platformRules')
    : (await readPlatformRules(sql)).rules.map(checkStored);
  const own = input.rules ? draft(input.rules, saved.groups, 'rules') : saved.rules.map(checkStored);
  await assertLists(sql, [...platform, ...own]);
  const redirects = await bulkRedirectsFor(sql, input.id, request);
  const ofVisitor = await listsOfAddress(sql, request.address);
  const ofPeer = request.peer === request.address ? ofVisitor : await listsOfAddress(sql, request.peer);
  const named = (kind: string) => ofVisitor.filter((list) => list.kind === kind).map(({ name }) => name);
  // Rules ask about the two addresses of the request and about no other.
  const inList: RunSurroundings['inList'] = (name, asked) =>
    (formatAddress(asked) === request.address ? ofVisitor : ofPeer).some((list) => list.name === name);
  const trace = runRules(request, {
    rules: [...platform.map((rule, at) => runRule(rule, at, true)), ...own.map((rule, at) => runRule(rule, at, false))],
    inList,
    allowLists: named('allow'),
    blockLists: named('block'),
    bulkRedirect: (key) => redirects.get(key),
    bodyLimit: site.contentSettings.requestBodyLimit,
    https: await siteHttps(sql, input.id, site.domains),
  });
  return { request, trace, inList };
}

/** With the country and the system of its address, where the request does not say them and there is a database. */
async function located(runtime: Runtime, request: RunRequest): Promise<RunRequest> {
  const { country, asNumber, asName } = request;
  if (country !== null && asNumber !== null && asName !== null) return request;
  const found = await locate(runtime, request.address);
  // The name belongs to the number of the database: another number has another name.
  const name = asNumber === null && found.asName !== null ? bytesOf(found.asName) : null;
  return {
    ...request,
    country: country ?? found.country,
    asNumber: asNumber ?? found.asnum,
    asName: asName ?? name,
  };
}

/** Throws what saving them would. */
function draft(inputs: readonly RuleInput[], groups: ReadonlySet<string> | null, list: string): CheckedRule[] {
  const ids = inputs.flatMap(({ id }) => (id === undefined ? [] : [{ id }]));
  return checkRules(inputs, ids, groups, list);
}

/** A saved rule, or what is known of one that the language does not take any more. */
function checkStored(rule: Rule): CheckedRule | BrokenRule {
  const checked = checkRule(rule);
  return 'error' in checked ? { rule, broken: true } : checked;
}

async function assertLists(sql: Sql, rules: readonly (CheckedRule | BrokenRule)[]): Promise<void> {
  await assertNamed(sql, new Set(rules.flatMap((rule) => ('broken' in rule ? [] : listsOf(rule)))));
}

/** Throws IP_LIST_REFERENCE_UNKNOWN. */
export async function assertNamed(sql: Sql, named: ReadonlySet<string>): Promise<void> {
  if (named.size === 0) return;
  const there = new Set(await ipListNames(sql));
  const unknown = [...named].filter((name) => !there.has(name)).sort();
  if (unknown.length > 0) fail('IP_LIST_REFERENCE_UNKNOWN', { lists: unknown.slice(0, LISTS_IN_REFUSAL) });
}

async function bulkRedirectsFor(sql: Sql, siteId: string, request: RunRequest): Promise<Map<Bytes, BulkRedirect>> {
  // The database holds no NUL, and no redirect has one.
  const asked = bulkRedirectKeys(request).filter((key) => !key.includes('\0'));
  const keys = new Map(asked.map((key) => [Buffer.from(key, 'latin1').toString('utf8'), key]));
  const found = await bulkRedirectsByKey(sql, siteId, [...keys.keys()]);
  return new Map(
    found.flatMap(({ source, target, ...rest }): [Bytes, BulkRedirect][] => {
      const shown = formatRedirectSource(sourceOfKey(source));
      const key = keys.get(source);
      // Bytes that are no UTF-8 have become others on their way to the database.
      return key === bytesOf(source) ? [[key, { ...rest, target: bytesOf(target), source: shown }]] : [];
    }),
  );
}
