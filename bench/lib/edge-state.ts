// A node's state folder with any number of sites, as the agent would have left it: for benchmarks of the edge alone.
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import path from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { frameRecord } from '../../agents/kit/journal.ts';
import { bodyHash, entryHash, fromSum, moveSum } from '../../proto/entry-hash.ts';
import { type SiteCache, SiteCacheSchema } from '../../proto/gen/svc/config/v1/cache_pb.js';
import {
  type ClientIp,
  ClientIpMode,
  ClientIpSchema,
  OriginPolicySchema,
} from '../../proto/gen/svc/config/v1/cluster_pb.js';
import { EntrySchema } from '../../proto/gen/svc/config/v1/entry_pb.js';
import {
  type SiteCompression,
  SiteCompressionSchema,
  type SiteHttps,
  SiteHttpsSchema,
} from '../../proto/gen/svc/config/v1/https_pb.js';
import {
  type PlatformProtection,
  PlatformProtectionSchema,
  type SiteProtection,
  SiteProtectionSchema,
} from '../../proto/gen/svc/config/v1/protection_pb.js';
import { type Rule, SiteRulesSchema } from '../../proto/gen/svc/config/v1/rules_pb.js';
import { BalancePolicy, DomainForm, type OriginPool, SiteSchema } from '../../proto/gen/svc/config/v1/site_pb.js';
import { type SiteWaf, SiteWafSchema } from '../../proto/gen/svc/config/v1/waf_pb.js';
import { ConfigChangeSchema, JournalHeaderSchema, JournalRecordSchema } from '../../proto/gen/svc/edge/v1/edge_pb.js';
import { type ConfigPosition, ConfigPositionSchema, Track } from '../../proto/gen/svc/node/v1/config_pb.js';

export const siteHost = (index: number): string => `site-${index}.bench.example`;

export interface EdgeState {
  folder: string;
  sites: number;
  origin: Address;
  /** Of the first site, besides `origin`, and how its origins are used. */
  moreOrigins?: readonly Address[];
  pool?: Init<OriginPool>;
  clientIp?: Init<ClientIp>;
  /** Of the sites in their order; sites without one have the defaults. */
  protection?: readonly Init<SiteProtection>[];
  platform?: Init<PlatformProtection>;
  /** Of the first site, and of all sites. */
  rules?: readonly Rule[];
  platformRules?: readonly Rule[];
  /** Of the first site. */
  compression?: Init<SiteCompression>;
  /** Of the first so many sites, in their order. */
  waf?: readonly Init<SiteWaf>[];
  /** Of the sites in their order; null for a site that does not cache. */
  cache?: readonly (Init<SiteCache> | null)[];
  /** Names of the first site besides its own. */
  aliases?: readonly string[];
  /** Of the site of an index; the certificates that it names are in the pack. */
  https?: (index: number) => Init<SiteHttps>;
}

interface Address {
  address: string;
  port: number;
}

type Init<T> = Omit<Partial<T>, '$typeName' | '$unknown'>;

const RECORD_ENTRIES = 500;

/** Writes config.journal for `sites` sites in front of one origin; loopback is an allowed origin range. Answers its position. */
export function writeEdgeState(state: EdgeState): ConfigPosition {
  const { folder } = state;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const fd = openSync(path.join(folder, 'config.journal'), 'w', 0o600);
  const write = (record: Parameters<typeof create<typeof JournalRecordSchema>>[1]) =>
    writeSync(fd, frameRecord(toBinary(JournalRecordSchema, create(JournalRecordSchema, record))));
  write({
    record: {
      case: 'header',
      value: create(JournalHeaderSchema, { format: 1, nodeId: 'bench-node', clusterId: 'bench-cluster' }),
    },
  });
  let sum = 0n;
  let batch: ReturnType<typeof entry>[] = [];
  const flush = () => {
    if (batch.length === 0) return;
    sum = moveSum(
      sum,
      [],
      batch.map((each) => entryHash(each.kind, each.id, bodyHash(each.body), each.features)),
    );
    write({ record: { case: 'config', value: create(ConfigChangeSchema, { upserts: batch }) } });
    batch = [];
  };
  for (const each of entries(state)) {
    batch.push(each);
    if (batch.length === RECORD_ENTRIES) flush();
  }
  flush();
  const position = create(ConfigPositionSchema, {
    epoch: 1n,
    track: Track.STABLE,
    revision: 1n,
    setHash: fromSum(sum),
  });
  write({ record: { case: 'config', value: create(ConfigChangeSchema, { position }) } });
  closeSync(fd);
  return position;
}

function* entries(state: EdgeState) {
  const {
    sites,
    origin,
    moreOrigins = [],
    pool = {},
    aliases = [],
    clientIp,
    protection,
    platform,
    rules,
    platformRules,
    compression,
    waf,
    cache,
    https,
  } = state;
  const mode = { mode: ClientIpMode.DIRECT, ...clientIp };
  yield entry('client-ip', '', toBinary(ClientIpSchema, create(ClientIpSchema, mode)));
  yield entry(
    'origin-policy',
    '',
    toBinary(OriginPolicySchema, create(OriginPolicySchema, { allowedCidrs: ['127.0.0.0/8'] })),
  );
  for (let index = 0; index < sites; index++)
    yield index === 0 ? siteEntry(0, [origin, ...moreOrigins], aliases, pool) : siteEntry(index, [origin]);
  if (https) for (let index = 0; index < sites; index++) yield httpsEntry(index, https(index));
  for (const [index, each] of (protection ?? []).entries()) {
    yield entry('protection', siteId(index), toBinary(SiteProtectionSchema, create(SiteProtectionSchema, each)));
  }
  if (platform) {
    const body = toBinary(PlatformProtectionSchema, create(PlatformProtectionSchema, platform));
    yield entry('platform-protection', '', body);
  }
  if (rules) yield entry('site-rules', siteId(0), rulesBody(rules));
  if (compression) {
    yield entry(
      'site-compression',
      siteId(0),
      toBinary(SiteCompressionSchema, create(SiteCompressionSchema, compression)),
    );
  }
  for (const [index, each] of (waf ?? []).entries()) {
    yield entry('site-waf', siteId(index), toBinary(SiteWafSchema, create(SiteWafSchema, each)));
  }
  for (const [index, each] of (cache ?? []).entries()) {
    if (each) yield entry('site-cache', siteId(index), toBinary(SiteCacheSchema, create(SiteCacheSchema, each)));
  }
  // Both kinds have the same form.
  if (platformRules) yield entry('platform-rules', '', rulesBody(platformRules));
}

export const siteId = (index: number): string => `01900000-0000-7000-8000-${index.toString(16).padStart(12, '0')}`;

function rulesBody(rules: readonly Rule[]): Uint8Array {
  return toBinary(SiteRulesSchema, create(SiteRulesSchema, { rules: [...rules] }));
}

/** An entry of HTTPS as the console would send it for the site of an index. */
export function httpsEntry(index: number, https: Init<SiteHttps>) {
  return entry('site-https', siteId(index), toBinary(SiteHttpsSchema, create(SiteHttpsSchema, https)));
}

function siteEntry(
  index: number,
  origins: readonly Address[],
  aliases: readonly string[] = [],
  pool: Init<OriginPool> = {},
) {
  const id = siteId(index);
  const site = create(SiteSchema, {
    name: siteHost(index),
    domains: [
      { form: DomainForm.EXACT, name: siteHost(index) },
      { form: DomainForm.WILDCARD, name: siteHost(index) },
      ...aliases.map((name) => ({ form: DomainForm.EXACT, name })),
    ],
    origins: origins.map(({ address, port }, place) => ({ id: `${id}-${place}`, address, port, weight: 1 })),
    pool: {
      policy: BalancePolicy.WEIGHTED_RANDOM,
      tlsVerify: true,
      websocket: true,
      keepalive: true,
      maxFails: 3,
      recoverySeconds: 30,
      tries: 3,
      statusRetry: true,
      connectTimeoutMs: 10_000,
      sendTimeoutMs: 60_000,
      readTimeoutMs: 60_000,
      keepaliveIdleSeconds: 60,
      keepaliveMaxRequests: 1000,
      ...pool,
    },
    requestBodyLimit: 104_857_600n,
    createdAtMs: BigInt(1_700_000_000_000 + index),
  });
  return entry('site', id, toBinary(SiteSchema, site));
}

function entry(kind: string, id: string, body: Uint8Array) {
  return create(EntrySchema, { kind, id, body });
}
