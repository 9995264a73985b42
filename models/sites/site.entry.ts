// Kind "site": a site as the edge executes it. Origins get an id made of what they are, so that health an edge has
// observed survives every change that leaves the origin itself alone.
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { Knex } from 'knex';
import {
  type ContentSettings,
  DEFAULT_ORIGIN_SETTINGS,
  type Origin,
  type OriginSettings,
} from '../../contract/resources/site-origins.ts';
import { type Domain, type DomainForm as Form, formatDomain, parseDomain } from '../../contract/scalars/domain.ts';
import {
  ActiveHealthCheckSchema,
  BalancePolicy,
  DomainForm,
  type Domain as DomainMessage,
  DomainSchema,
  type Origin as OriginEntry,
  OriginPoolSchema,
  OriginSchema,
  SiteSchema,
} from '../../proto/gen/svc/config/v1/site_pb.js';
import { portReference } from '../clusters/listen-ports.entry.ts';
import type { CompiledEntry, EntryKind, Missing, Reference, RollbackOwners } from '../config/entry-kind.ts';
import { siteOwner } from '../config/entry-owner.ts';
import { areUsual, type SitePorts, USUAL_PORTS } from './site-ports.ts';

/** Among the references of a site's entry: the entry is that of a disabled site, which nodes do not serve. */
export const DISABLED_REF = 'state:disabled';

export interface SiteSource {
  id: string;
  name: string;
  enabled: boolean;
  domains: Domain[];
  origins: Origin[];
  originSettings: OriginSettings;
  contentSettings: Pick<ContentSettings, 'requestBodyLimit'>;
  ports: SitePorts;
  createdAt: Date;
}

/** Of the settings for origins those that sites have lacked which were saved before they came. */
export const ORIGIN_SETTINGS_BEFORE = {
  activeHealthCheck: DEFAULT_ORIGIN_SETTINGS.activeHealthCheck,
  sessionAffinity: DEFAULT_ORIGIN_SETTINGS.sessionAffinity,
  protocol: DEFAULT_ORIGIN_SETTINGS.protocol,
  grpc: DEFAULT_ORIGIN_SETTINGS.grpc,
} satisfies Partial<OriginSettings>;

const LIST_BATCH = 1000;

const FORMS: Record<Form, DomainForm> = {
  exact: DomainForm.EXACT,
  wildcard: DomainForm.WILDCARD,
  suffix: DomainForm.SUFFIX,
  pattern: DomainForm.PATTERN,
};
const POLICIES: Record<OriginSettings['policy'], BalancePolicy> = {
  weighted_random: BalancePolicy.WEIGHTED_RANDOM,
  round_robin: BalancePolicy.ROUND_ROBIN,
  consistent_hash: BalancePolicy.CONSISTENT_HASH,
};

export const siteKind: EntryKind = {
  kind: 'site',
  compilerVersion: 2,
  bypass: withdrawn,
  routes: (before, after) =>
    !isDeepStrictEqual(routingOf(complete(before as SettingsOf)), routingOf(complete(after as SettingsOf))),
  onRollback: 'dropIfDisabled',
  shown: (settings) => {
    const site = complete(settings as SettingsOf);
    return { ...site, domains: site.domains.map(formatDomain) };
  },
  provides: { site: missingSites, domain: missingDomains, group: missingGroups },
  scope: 'cluster',
  ownerOf: siteOwner,
  async compile(sql, clusterId, ids) {
    const { rows } = await sql.raw<{ rows: SiteSource[] }>(
      `select s.id, s.name, s.enabled, s.origins, ?::jsonb || s.origin_settings as "originSettings",
              s.content_settings as "contentSettings", s.ports, s.created_at as "createdAt", d.domains
         from site s cross join lateral (
           select coalesce(jsonb_agg(jsonb_build_object('form', form, 'name', name) order by position), '[]') as domains
             from site_domain where site_id = s.id) d
        where s.cluster_id = ? and s.id = any(?)`,
      [JSON.stringify(ORIGIN_SETTINGS_BEFORE), clusterId, ids as never],
    );
    return new Map(rows.map((row) => [row.id, compileSite(row)]));
  },
  async *list(sql, clusterId) {
    let after = '';
    for (;;) {
      const { rows } = await sql.raw<{ rows: { id: string }[] }>(
        'select id from site where cluster_id = ? and id > ? order by id limit ?',
        [clusterId, after, LIST_BATCH],
      );
      if (rows.length === 0) return;
      yield rows.map(({ id }) => id);
      after = rows.at(-1)!.id;
    }
  },
};

/** A domain as nodes get it. */
export function domainMessage({ form, name }: Domain): DomainMessage {
  return create(DomainSchema, { form: FORMS[form], name });
}

/** The entry of a site; a disabled one keeps its name and domains only. */
export function compileSite(site: SiteSource): CompiledEntry {
  const { name, enabled, domains, origins, originSettings, contentSettings, ports } = site;
  const { requestBodyLimit } = contentSettings;
  const ownPorts = enabled && !areUsual(ports);
  const message = create(SiteSchema, {
    name: site.name,
    disabled: !site.enabled,
    domains: site.domains.map(domainMessage),
    createdAtMs: BigInt(site.createdAt.getTime()),
    ...(site.enabled
      ? {
          origins: compileOrigins(origins),
          pool: compilePool(originSettings),
          requestBodyLimit: BigInt(requestBodyLimit),
        }
      : {}),
    ...(ownPorts ? { httpPorts: ports.http, httpsPorts: ports.https } : {}),
  });
  return {
    body: toBinary(SiteSchema, message),
    features: capabilitiesOfSite(site),
    refs: [
      ...(site.enabled ? [] : [DISABLED_REF]),
      ...site.domains.map((domain) => `domain:${formatDomain(domain)}`),
      ...(ownPorts ? extraPorts(ports) : []),
    ],
    settings: { name, enabled, domains, origins, originSettings, contentSettings: { requestBodyLimit }, ports },
  };
}

function compilePool({ policy, sessionAffinity, activeHealthCheck, protocol, ...settings }: OriginSettings) {
  return create(OriginPoolSchema, {
    ...settings,
    policy: POLICIES[policy],
    http2: protocol === 'http2',
    affinityTtlSeconds: sessionAffinity.enabled ? sessionAffinity.ttlSeconds : 0,
    ...(activeHealthCheck.enabled ? { activeHealthCheck: compileHealthCheck(activeHealthCheck) } : {}),
  });
}

function compileHealthCheck({ enabled: _, method, ...check }: OriginSettings['activeHealthCheck']) {
  return create(ActiveHealthCheckSchema, { ...check, head: method === 'HEAD' });
}

function extraPorts({ http, https }: SitePorts): string[] {
  return [
    ...http.filter((port) => port !== 80).map((port) => portReference('http', port)),
    ...https.filter((port) => port !== 443).map((port) => portReference('https', port)),
  ];
}

function routingOf({ domains, origins, originSettings }: Stable): object {
  return { domains, origins, originSettings };
}

type Stable = Omit<SiteSource, 'id' | 'createdAt'>;
/** Those of before sites had ports of their own name none, and older ones lack settings for origins. */
type SettingsOf = Omit<Stable, 'ports' | 'originSettings'> &
  Partial<Pick<Stable, 'ports'>> & {
    originSettings: Omit<OriginSettings, keyof typeof ORIGIN_SETTINGS_BEFORE> & Partial<OriginSettings>;
  };

function complete<S extends SettingsOf>(settings: S): S & Stable {
  return { ports: USUAL_PORTS, ...settings, originSettings: { ...ORIGIN_SETTINGS_BEFORE, ...settings.originSettings } };
}

/**
 * A site that was disabled, and domains that it lost, are served nowhere any more: who has them now must not share them
 * with nodes that a canary leaves alone.
 */
function withdrawn(stable: object, now: CompiledEntry | null): CompiledEntry | undefined {
  const before: Stable = complete(stable as SettingsOf);
  const after = now?.settings as Stable | undefined;
  if (!now || !after) return undefined;
  const kept = new Set(after.domains.map(formatDomain));
  const domains = before.domains.filter((domain) => kept.has(formatDomain(domain)));
  const enabled = before.enabled && after.enabled;
  if (enabled === before.enabled && domains.length === before.domains.length) return undefined;
  const createdAt = new Date(Number(fromBinary(SiteSchema, now.body).createdAtMs));
  return compileSite({ ...before, id: '', createdAt, enabled, domains });
}

/** Capabilities that a site needs, sorted; of a disabled one nodes get no origins. */
export function capabilitiesOfSite({
  enabled,
  domains,
  origins,
  originSettings,
  ports,
}: Pick<SiteSource, 'enabled' | 'domains' | 'origins' | 'originSettings' | 'ports'>): string[] {
  const forms = domains.some(({ form }) => form === 'suffix' || form === 'pattern');
  const groups = enabled && origins.some(({ group }) => group !== '');
  const own = enabled && !areUsual(ports);
  const affinity = enabled && originSettings.sessionAffinity.enabled;
  const http2 = enabled && originSettings.protocol === 'http2';
  const checks = enabled && originSettings.activeHealthCheck.enabled;
  return [
    ...(checks ? ['active-health-v1'] : []),
    ...(forms ? ['domains-v2'] : []),
    ...(own ? ['edge-ports-v1'] : []),
    ...(http2 ? ['origin-http2-v1'] : []),
    ...(groups ? ['rules-v2'] : []),
    ...(affinity ? ['session-affinity-v1'] : []),
  ];
}

function compileOrigins(origins: readonly Origin[]): OriginEntry[] {
  const ids = originIds(origins);
  return origins.map(({ scheme, ...origin }, index) =>
    create(OriginSchema, { ...origin, id: ids[index]!, https: scheme === 'https' }),
  );
}

/** The ids by which nodes know the origins of a site, in their order. */
export function originIds(origins: readonly Origin[]): string[] {
  const seen = new Map<string, number>();
  return origins.map(({ scheme, ...origin }) => {
    const identity = JSON.stringify([scheme, origin.address, origin.port, origin.hostHeader, origin.sni, origin.group]);
    const occurrence = seen.get(identity) ?? 0;
    seen.set(identity, occurrence + 1);
    return createHash('sha256').update(`${identity}#${occurrence}`).digest('base64url').slice(0, 16);
  });
}

/** Sites that are not in the cluster any more. */
async function missingSites(sql: Knex, clusterId: string, references: readonly Reference[]): Promise<Missing[]> {
  const { rows } = await sql.raw<{ rows: { id: string; label: string }[] }>(
    `select asked.id, coalesce(l.name, asked.id) as label from unnest(?::text[]) as asked(id)
       left join site_label l on l.site_id = asked.id
      where not exists (select from site s where s.id = asked.id and s.cluster_id = ?)`,
    [references.map(({ name }) => name) as never, clusterId],
  );
  const labels = new Map(rows.map(({ id, label }) => [id, label]));
  return references.flatMap((reference) => {
    const label = labels.get(reference.name);
    return label === undefined ? [] : [{ ...reference, type: 'site', label }];
  });
}

/** Groups of origins that sites do not have any more which stay as they are now. */
async function missingGroups(
  sql: Knex,
  _clusterId: string,
  references: readonly Reference[],
  { staying }: RollbackOwners,
): Promise<Missing[]> {
  const asked = references
    .filter(({ owner }) => owner !== null && staying.has(owner))
    .map((reference) => ({ reference, parts: reference.name.split('/') as [siteId: string, group: string] }));
  const { rows } = await sql.raw<{ rows: { index: number }[] }>(
    `select asked.index::int from unnest(?::text[], ?::text[]) with ordinality as asked(site, name, index)
      where not exists (
        select from site s where s.id = asked.site
          and s.origins @> jsonb_build_array(jsonb_build_object('group', asked.name)))`,
    [asked.map(({ parts }) => parts[0]), asked.map(({ parts }) => parts[1])] as never,
  );
  return rows.map(({ index }) => {
    const { reference, parts } = asked[index - 1]!;
    return { ...reference, type: 'origin_group', label: parts[1] };
  });
}

/** Domains that do not belong to the site any more whose entry has them, nor to nobody where it gets them back. */
async function missingDomains(
  sql: Knex,
  _clusterId: string,
  references: readonly Reference[],
  { restoring }: RollbackOwners,
): Promise<Missing[]> {
  const domains = references.map(({ name, owner }) => ({ owner, ...parseDomain(name)! }));
  const { rows } = await sql.raw<{ rows: { index: number }[] }>(
    `select asked.index::int
       from unnest(?::text[], ?::text[], ?::text[]) with ordinality as asked(owner, form, name, index)
       left join site_domain d on d.form = asked.form and d.name = asked.name
      where not coalesce('site:' || d.site_id = asked.owner, asked.owner = any(?::text[]))`,
    [
      domains.map(({ owner }) => owner),
      domains.map(({ form }) => form),
      domains.map(({ name }) => name),
      [...restoring],
    ] as never,
  );
  return rows.map(({ index }) => ({ ...references[index - 1]!, type: 'domain', label: references[index - 1]!.name }));
}
