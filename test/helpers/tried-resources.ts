// Sites with rules, redirects, HTTPS, the WAF and ports, and rules of the platform, saved as people save them, with what
// nodes should get of each save; and the same read from the entries of a node.
import { isDeepStrictEqual } from 'node:util';
import { fromBinary } from '@bufbuild/protobuf';
import type { Input } from '../../contract/procedure.ts';
import type { siteRules } from '../../contract/resources/rules.ts';
import type { WafOfSite } from '../../contract/resources/site-waf.ts';
import type { Rule } from '../../contract/scalars/rule.ts';
import { listenPortsKind } from '../../models/clusters/listen-ports.entry.ts';
import { PLATFORM_RULES_KIND } from '../../models/rules/platform-rules.entry.ts';
import { SITE_RULES_KIND } from '../../models/rules/site-rules.entry.ts';
import { chunkOfSource } from '../../models/sites/bulk-redirect.ts';
import { bulkRedirectsId, bulkRedirectsKind } from '../../models/sites/bulk-redirects.entry.ts';
import { siteKind } from '../../models/sites/site.entry.ts';
import { SITE_COMPRESSION_KIND } from '../../models/sites/site-compression.entry.ts';
import { SITE_HTTPS_KIND } from '../../models/sites/site-https.entry.ts';
import { SITE_WAF_KIND } from '../../models/waf/site-waf.entry.ts';
import { publishClusterRequests } from '../../pipeline/publish-requested.ts';
import { ListenPortsSchema, SiteCompressionSchema, SiteHttpsSchema } from '../../proto/gen/svc/config/v1/https_pb.js';
import { BulkRedirectsSchema, SiteRulesSchema } from '../../proto/gen/svc/config/v1/rules_pb.js';
import { SiteSchema } from '../../proto/gen/svc/config/v1/site_pb.js';
import { SiteWafSchema, WafMode } from '../../proto/gen/svc/config/v1/waf_pb.js';
import { systemCall } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { setBulkRedirects } from '../../services/bulk-redirects/bulk-redirects.ts';
import { setPlatformRules } from '../../services/rules/platform-rules.ts';
import { setSiteRules } from '../../services/rules/site-rules.ts';
import { setSiteHttps } from '../../services/site-https/site-https.ts';
import { createSite } from '../../services/sites/create-site.ts';
import { deleteSite } from '../../services/sites/delete-site.ts';
import { updateSite } from '../../services/sites/update-site.ts';
import { updateSiteWaf } from '../../services/waf/site-waf.ts';
import type { ModelNode } from './model-node.ts';
import { THING } from './pipeline.ts';
import { ruleWith } from './rules.ts';

/** What nodes should get of a save: the text of each entry that it changed, null for one that is no more. */
export type Changed = Map<string, string | null>;

/** The name of an entry. */
export const entryName = (kind: string, id: string) => `${kind} ${id}`;
export const PLATFORM_RULES = entryName(PLATFORM_RULES_KIND, '');

/** Lists of rules to choose from: the status that each answers, and whether it is enabled. */
const RULE_LISTS: readonly (readonly [status: 403 | 451, enabled: boolean])[][] = [
  [],
  [[403, true]],
  [
    [451, true],
    [403, true],
  ],
  [
    [403, true],
    [451, false],
  ],
];
export const LAST_RULE_LIST = RULE_LISTS.length - 1;

/** The first two travel in one entry. */
const SOURCES = ['/old', besideOf('/old'), '/other'];
/** Each source there or not, and where the first one leads. */
export const LAST_REDIRECT_LIST = 2 ** (SOURCES.length + 1) - 1;

/** Ports with TLS of a site or a cluster besides 443. */
export const PORT_LISTS: readonly (readonly number[])[] = [[], [8443], [8443, 8444]];

const call = () => systemCall('test');

interface Https {
  certificateId: string | null;
  http3: boolean;
  gzipLevel: number;
}

type Waf = Pick<WafOfSite, 'mode' | 'paranoiaLevel'>;

/** A site as it is saved, which after an abort or a rollback is not what nodes have. */
export class TriedSite {
  readonly id: string;
  readonly #runtime: Runtime;
  #rules: Rule[] = [];
  #redirects = new Map<string, string>();
  #https: Https = { certificateId: null, http3: false, gzipLevel: 0 };

  private constructor(runtime: Runtime, id: string) {
    this.#runtime = runtime;
    this.id = id;
  }

  static async create(runtime: Runtime, clusterId: string, name: string): Promise<TriedSite> {
    const input = { clusterId, name, domains: [`${name}.example`], origins: [{ address: 'origin.example' }] };
    const { site } = await createSite(runtime, input, call());
    return new TriedSite(runtime, site.id);
  }

  get name(): string {
    return entryName(siteKind.kind, this.id);
  }

  async saveRules(list: number): Promise<Changed> {
    const before = this.#rules;
    const input = { id: this.id, rules: rulesOf(list, before) };
    this.#rules = (await setSiteRules(this.#runtime, input, call())).rules;
    return this.#rulesSaved();
  }

  /** Nodes get them also when they are saved as they are, or the site is. */
  #rulesSaved(): Changed {
    return new Map([[entryName(SITE_RULES_KIND, this.id), rulesText(this.#rules)]]);
  }

  async saveRedirects(list: number): Promise<Changed> {
    const [before, after] = [this.#redirects, redirectsOf(list)];
    const more = { statusCode: 301 as const, preserveQuery: false };
    const redirects = [...after].map(([source, target]) => ({ source, target, ...more }));
    await setBulkRedirects(this.#runtime, { id: this.id, redirects }, call());
    this.#redirects = after;
    const [had, has] = [this.#chunks(before), this.#chunks(after)];
    const changed = [...new Set([...had.keys(), ...has.keys()])].filter((name) => had.get(name) !== has.get(name));
    // Saved as they are, all are compared with what nodes run.
    const names = isDeepStrictEqual(before, after) ? this.#everyChunk() : changed;
    return new Map(names.map((name) => [name, has.get(name) ?? null]));
  }

  /** They are saved together and published as two entries. Throws what a save does. */
  async saveHttps(change: Partial<Https>): Promise<Changed> {
    const after = { ...this.#https, ...change };
    await setSiteHttps(this.#runtime, { id: this.id, settings: after }, call());
    this.#https = after;
    const { certificateId, http3, gzipLevel } = after;
    return new Map([
      [entryName(SITE_HTTPS_KIND, this.id), certificateId === null ? null : httpsText([certificateId], http3)],
      [entryName(SITE_COMPRESSION_KIND, this.id), gzipLevel === 0 ? null : String(gzipLevel)],
    ]);
  }

  async saveWaf(waf: Waf): Promise<Changed> {
    await updateSiteWaf(this.#runtime, { id: this.id, ...waf }, call());
    const text = waf.mode === 'off' ? null : wafText(waf.mode, waf.paranoiaLevel);
    return new Map([[entryName(SITE_WAF_KIND, this.id), text]]);
  }

  /** Binds it to 443 and these. Throws what a save does. */
  async savePorts(ports: readonly number[]): Promise<Changed> {
    const input = { id: this.id, ports: { http: [80], https: [443, ...ports] } };
    const { site } = await updateSite(this.#runtime, input, call());
    return new Map([...this.#rulesSaved(), [this.name, siteText(site.name, site.ports.https)]]);
  }

  /** Answers the names of all entries that it can have had. */
  async delete(): Promise<string[]> {
    await deleteSite(this.#runtime, { id: this.id }, call());
    const kinds = [siteKind.kind, SITE_RULES_KIND, SITE_HTTPS_KIND, SITE_COMPRESSION_KIND, SITE_WAF_KIND];
    return [...kinds.map((kind) => entryName(kind, this.id)), ...this.#everyChunk()];
  }

  #everyChunk(): string[] {
    return [...this.#chunks(new Map(SOURCES.map((source) => [source, '']))).keys()];
  }

  #chunks(redirects: ReadonlyMap<string, string>): Map<string, string> {
    const chunks = Map.groupBy(redirects, ([source]) => chunkOfSource(source));
    return new Map(
      [...chunks].map(([chunk, pairs]) => [
        entryName(bulkRedirectsKind.kind, bulkRedirectsId(this.id, chunk)),
        redirectsText(pairs),
      ]),
    );
  }
}

/** The rules of the platform as they are saved. */
export class TriedPlatform {
  readonly #runtime: Runtime;
  #rules: Rule[] = [];

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** What a cluster has that is created now. */
  get published(): Map<string, string> {
    const text = rulesText(this.#rules);
    return new Map(text === null ? [] : [[PLATFORM_RULES, text]]);
  }

  /** Answers when this cluster has them; others can be late. */
  async saveRules(list: number, clusterId: string): Promise<Changed> {
    const before = this.#rules;
    const input = { rules: rulesOf(list, before) };
    this.#rules = (await setPlatformRules(this.#runtime, input, call())).rules;
    await publishClusterRequests(this.#runtime, call(), clusterId);
    return changedRules(PLATFORM_RULES, before, this.#rules);
  }
}

const rulesRead = (body: Uint8Array) =>
  fromBinary(SiteRulesSchema, body)
    .rules.map(({ id, action }) => `${id} ${action.case === 'block' ? action.value.status : action.case}`)
    .join('\n');
const READ: Readonly<Record<string, (body: Uint8Array) => string>> = {
  [THING]: (body) => Buffer.from(body).toString(),
  [siteKind.kind]: (body) => {
    const { name, httpsPorts } = fromBinary(SiteSchema, body);
    return siteText(name, httpsPorts);
  },
  [SITE_HTTPS_KIND]: (body) => {
    const { certificates, http3 } = fromBinary(SiteHttpsSchema, body);
    return httpsText(
      certificates.map(({ certificateId }) => certificateId),
      http3,
    );
  },
  [listenPortsKind.kind]: (body) => fromBinary(ListenPortsSchema, body).httpsPorts.join(' '),
  [SITE_COMPRESSION_KIND]: (body) => String(fromBinary(SiteCompressionSchema, body).gzip!.level),
  [SITE_WAF_KIND]: (body) => {
    const { mode, paranoiaLevel } = fromBinary(SiteWafSchema, body);
    return wafText(mode === WafMode.BLOCK ? 'block' : 'detect', paranoiaLevel);
  },
  [SITE_RULES_KIND]: rulesRead,
  [PLATFORM_RULES_KIND]: rulesRead,
  [bulkRedirectsKind.kind]: (body) =>
    redirectsText(fromBinary(BulkRedirectsSchema, body).redirects.map(({ source, target }) => [source, target])),
};

/** A site's name and its ports with TLS besides 443. */
export const siteText = (name: string, ports: readonly number[]) =>
  [name, ...ports.filter((port) => port !== 443)].join(' ');
const wafText = (mode: Waf['mode'], paranoiaLevel: number) => `${mode} ${paranoiaLevel}`;
const httpsText = (certificates: readonly string[], http3: boolean) => [...certificates, http3].join(' ');

/** By certificate, the fingerprints of it that the node is told to show, in hexadecimal. */
export function shownBy(node: ModelNode): Map<string, Set<string>> {
  const shown = new Map<string, Set<string>>();
  for (const { kind, body } of node.entries.values()) {
    if (kind !== SITE_HTTPS_KIND) continue;
    for (const { certificateId, fingerprint } of fromBinary(SiteHttpsSchema, body).certificates) {
      const known = shown.get(certificateId) ?? new Set();
      shown.set(certificateId, known.add(Buffer.from(fingerprint).toString('hex')));
    }
  }
  return shown;
}

/** The texts of the entries that the node runs, of things, sites and what they have, and the platform. */
export const textsRun = (node: ModelNode) =>
  Object.fromEntries(
    [...node.entries.values()]
      .filter(({ kind }) => kind in READ)
      .map(({ kind, id, body }) => [entryName(kind, id), READ[kind]!(body)])
      .sort(),
  );

type RuleInputs = Input<typeof siteRules.set>['rules'];

/** Rules keep the ids that they were given, so that what was there once can come back. */
function rulesOf(list: number, before: readonly Rule[]): RuleInputs {
  return RULE_LISTS[list]!.map(([statusCode, enabled], place) => {
    const { id: _made, ...rule } = ruleWith({ kind: 'block', statusCode }, { name: `Rule ${place}`, enabled });
    const known = before[place];
    return known ? { ...rule, id: known.id } : rule;
  });
}

/** Of a save that changes nothing nodes get nothing, whatever they have. */
function changedRules(name: string, before: readonly Rule[], after: readonly Rule[]): Changed {
  return new Map(isDeepStrictEqual(before, after) ? [] : [[name, rulesText(after)]]);
}

function rulesText(rules: readonly Rule[]): string | null {
  const lines = rules.filter(({ enabled }) => enabled).map(({ id, action }) => `${id} ${(action as Block).statusCode}`);
  return lines.length > 0 ? lines.join('\n') : null;
}

type Block = Extract<Rule['action'], { kind: 'block' }>;

function redirectsOf(list: number): Map<string, string> {
  const there = SOURCES.filter((_source, place) => (list >> place) & 1);
  return new Map(there.map((source) => [source, source === SOURCES[0] ? `/new/${list >> SOURCES.length}` : '/new']));
}

function redirectsText(pairs: readonly (readonly [source: string, target: string])[]): string {
  return pairs
    .map((pair) => pair.join(' '))
    .sort()
    .join('\n');
}

function besideOf(source: string): string {
  for (let number = 0; ; number++) {
    const other = `${source}/${number}`;
    if (chunkOfSource(other) === chunkOfSource(source)) return other;
  }
}
