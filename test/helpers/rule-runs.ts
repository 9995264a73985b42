// Rules run over requests, in the short form of test/vectors/rule-runs.json.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { root } from '../../bin/lib/root.ts';
import { contains, parseCidr } from '../../contract/scalars/cidr.ts';
import type { Rule } from '../../contract/scalars/rule.ts';
import { RULE_ACTIONS } from '../../contract/scalars/rule-action.ts';
import type { RuleRun, RuleTrace, ShownValue } from '../../contract/scalars/rule-trace.ts';
import { type CheckedRule, checkRule, ruleMessage } from '../../models/rules/rule-message.ts';
import { SiteRulesSchema } from '../../proto/gen/svc/config/v1/rules_pb.js';
import { runRule } from '../../services/rules/run/from-rule.ts';
import type { BulkRedirect, RunRequest, RunSurroundings } from '../../services/rules/run/request.ts';
import { runRules } from '../../services/rules/run/run.ts';

/** A rule without what can be left out. */
export interface ShortRule {
  id?: string;
  enabled?: boolean;
  phase: Rule['phase'];
  expression: string;
  action: { kind: Rule['action']['kind'] };
}

/** A request without what is as in most. */
export type ShortRequest = Partial<Omit<RunRequest, 'response'>>;

export interface ShortBulkRedirect {
  source: string;
  target: string;
  statusCode?: number;
  preserveQuery?: boolean;
}

/** What became of a request; what is not there did not happen. */
export interface RunExpectation {
  kind?: string;
  status?: number;
  error?: string;
  location?: string;
  /** Id of the rule that decided. */
  rule?: string;
  bulkRedirect?: string;
  challenge?: string;
  exempt?: boolean;
  /** Ids of rules that matched and did what they do, in the order in which they did it. */
  matched?: string[];
  limits?: string[];
  target?: string;
  requestHeaders?: Record<string, string[]>;
  overrides?: Record<string, boolean | number | string>;
  origin?: Record<string, string | number>;
  responseHeaders?: Record<string, string[]>;
  codings?: string[];
}

export interface RunCase {
  name: string;
  platform?: ShortRule[];
  rules: ShortRule[];
  bulk?: ShortBulkRedirect[];
  request?: ShortRequest;
  /** What the site has of HTTPS; without a status plain requests are answered as they come. */
  https?: { status?: number; port?: number; excluded?: string[]; pending?: string[] };
  response?: RunRequest['response'];
  expect: RunExpectation;
  entries?: { platform: string; site: string };
}

export interface RunVectors {
  request: ShortRequest;
  lists: Record<string, string[]>;
  cases: RunCase[];
}

/** The vectors that nodes are tested with as well. */
export function runVectors(): RunVectors {
  return JSON.parse(readFileSync(join(root, 'test/vectors/rule-runs.json'), 'utf8')) as RunVectors;
}

const DEFAULT_REQUEST: RunRequest = {
  method: 'GET',
  scheme: 'https',
  host: 'www.example.com',
  port: 443,
  uri: '/',
  version: 'HTTP/1.1',
  headers: [],
  address: '192.0.2.1',
  peer: '192.0.2.1',
  id: null,
  arrivedSeconds: 1_800_000_000,
  ja4: null,
  country: null,
  subdivision: null,
  asNumber: null,
  asName: null,
  passLevel: 'normal',
  bodySize: null,
  response: null,
};

type Properties = Record<string, { default?: unknown; items?: { properties?: Properties } }>;

function withDefaults(value: Record<string, unknown>, properties: Properties): Record<string, unknown> {
  const filled = { ...value };
  for (const [name, schema] of Object.entries(properties)) {
    if (filled[name] === undefined && schema.default !== undefined) filled[name] = structuredClone(schema.default);
    const inside = schema.items?.properties;
    if (inside) filled[name] = (filled[name] as Record<string, unknown>[]).map((each) => withDefaults(each, inside));
  }
  return filled;
}

/** Rules with their defaults; `prefix` and their place is their id. Throws for an expression that is not valid. */
export function rulesOf(rules: readonly ShortRule[], prefix: string): CheckedRule[] {
  return rules.map(({ id = '', enabled = true, action, ...rest }, index) => {
    const properties = RULE_ACTIONS[action.kind].properties as unknown as Properties;
    const whole = withDefaults(action as never, properties) as unknown as Rule['action'];
    const named = id || `${prefix}${index}`;
    const checked = checkRule({ ...rest, id: named, name: named, enabled, action: whole });
    if ('error' in checked) throw new Error(`${rest.expression} ${checked.field}: ${checked.error.message}`);
    return checked;
  });
}

/** The rules as a node gets them, in base64; the id of an IP list is id-of- and its name. */
export function entryOf(rules: readonly CheckedRule[]): string {
  const lists = new Map(
    rules.flatMap(({ facts }) => facts.flatMap((each) => each.lists)).map((name) => [name, `id-of-${name}`]),
  );
  const messages = rules.filter(({ rule }) => rule.enabled).map((rule) => ruleMessage(rule, lists));
  return Buffer.from(toBinary(SiteRulesSchema, create(SiteRulesSchema, { rules: messages }))).toString('base64');
}

/** Runs rules in their short form. */
export function runCase(
  { platform = [], rules, bulk = [], request = {}, response = null, https }: Omit<RunCase, 'name' | 'expect'>,
  {
    lists = {},
    bodyLimit = 0,
    maxCost,
  }: { lists?: Record<string, string[]>; bodyLimit?: number; maxCost?: number } = {},
): RuleTrace {
  const redirects = new Map(
    bulk.map(({ source, statusCode = 301, preserveQuery = false, target }): [string, BulkRedirect] => [
      source,
      { source, statusCode, preserveQuery, target },
    ]),
  );
  const around: RunSurroundings = {
    rules: [
      ...rulesOf(platform, 'p').map((rule, at) => runRule(rule, at, true)),
      ...rulesOf(rules, 's').map((rule, at) => runRule(rule, at, false)),
    ],
    inList: (list, address) => (lists[list] ?? []).some((cidr) => contains(parseCidr(cidr)!, address)),
    allowLists: [],
    blockLists: [],
    bulkRedirect: (source) => redirects.get(source),
    bodyLimit,
    https: (host) => {
      if (!https) return null;
      if (https.pending?.includes(host)) return 'pending';
      const { status, port = 443, excluded = [] } = https;
      return { forced: status !== undefined && !excluded.includes(host), status: status ?? 301, port };
    },
  };
  return runRules({ ...DEFAULT_REQUEST, ...request, response }, around, maxCost);
}

const hasActed = ({ result, effects }: RuleRun) =>
  result === 'matched' && !effects.every(({ kind }) => kind === 'header_left' || kind === 'exemption_left');

const bytesOf = ({ text, base64 }: ShownValue): string =>
  text === null ? Buffer.from(base64!, 'base64').toString('latin1') : Buffer.from(text, 'utf8').toString('latin1');

/** The vectors compare long values by their start. */
const wholeOf = (value: ShownValue) => `${bytesOf(value)}${'v'.repeat(Math.max(0, value.bytes - 512))}`;

const headersOf = (headers: { name: string; lines: ShownValue[] }[]) =>
  Object.fromEntries(headers.map(({ name, lines }) => [name, lines.map(wholeOf)]));

/** What a run came to, in the form of the vectors. `uri` is the target that was asked for. */
export function summaryOf({ outcome, phases }: RuleTrace, uri: string): RunExpectation {
  const runs = phases.flatMap(({ rules }) => rules);
  const { after } = phases.at(-1)!;
  const { originGroup, hostHeader, sni, port } = after;
  const origin = Object.entries({ originGroup, hostHeader, sni, port }).filter(
    ([, value]) => value !== '' && value !== 0,
  );
  const summary: Record<string, unknown> = {
    kind: outcome.kind === 'origin' ? null : outcome.kind,
    // Which answer a challenge is depends on the visitor.
    status: outcome.kind === 'challenge' ? null : outcome.status,
    error: outcome.error,
    location: outcome.location && bytesOf(outcome.location),
    rule: outcome.rule?.id ?? null,
    bulkRedirect: outcome.bulkRedirect,
    challenge: outcome.challenge,
    exempt: outcome.exempt || null,
    matched: some(runs.filter(hasActed).map(({ id }) => id)),
    limits: some(outcome.limits.map(({ rule }) => rule.id)),
    target: bytesOf(after.target) === uri ? null : bytesOf(after.target),
    requestHeaders: someOf(headersOf(after.requestHeaders)),
    overrides: someOf(Object.fromEntries(after.overrides.map(({ name, value }) => [name, typed(value.text!)]))),
    origin: someOf(Object.fromEntries(origin)),
    responseHeaders: someOf(headersOf(after.responseHeaders)),
    codings: after.codings,
  };
  return Object.fromEntries(Object.entries(summary).filter(([, value]) => value !== null)) as RunExpectation;
}

const some = <T>(items: T[]) => (items.length > 0 ? items : null);
const someOf = (record: object) => (Object.keys(record).length > 0 ? record : null);

function typed(text: string): boolean | number | string {
  if (text === 'true' || text === 'false') return text === 'true';
  return /^[0-9]+$/.test(text) ? Number(text) : text;
}
