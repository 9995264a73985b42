import { badField, fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { type addresses, DOSSIER_CLUSTERS, DOSSIER_HOURS, DOSSIER_SITES } from '../../contract/resources/addresses.ts';
import { DEFAULT_PROTECTION, type ProtectionOfSite } from '../../contract/resources/protection.ts';
import { LEVELS } from '../../contract/scalars/challenge.ts';
import {
  type Cidr,
  formatAddress,
  formatCidr,
  isSingleAddress,
  parseAddress,
  parseCidr,
} from '../../contract/scalars/cidr.ts';
import { banCount } from '../../models/bans/ban-list.ts';
import { CLIENT_IP } from '../../models/clusters/client-ip.entry.ts';
import {
  type AddressAttack,
  type AddressBan,
  type AddressEvent,
  activeBansOf,
  attackHoursOf,
  attacksOf,
  type ClusterFacts,
  clusterFacts,
  decidingBans,
  eventsOf,
  listsOf,
  pastBansOf,
  type SiteFacts,
  siteFacts,
  sitesOf,
} from '../../models/security/address-dossier.ts';
import { readProtectionSettings } from '../../models/security/protection-setting.ts';
import { clusterOfSite } from '../../models/sites/site.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { locationOf } from './locations.ts';
import { type Facts, type Verdict, verdictOf } from './verdict.ts';

type Dossier = Output<typeof addresses.get>;

/** Prefix of the network that nodes count as one IPv6 client. */
const IPV6_CLIENT = 64;
const HOUR_MS = 3_600_000;

/** Throws BAD_REQUEST for what is no address, SITE_NOT_FOUND. */
export async function addressDossier(runtime: Runtime, input: Input<typeof addresses.get>): Promise<Dossier> {
  const sql = runtime.pools.api;
  const range = readRange(input);
  const cidr = formatCidr(range);
  const client = clientOf(range);
  const { siteId } = input;
  if (siteId !== undefined && !(await clusterOfSite(sql, siteId))) fail('SITE_NOT_FOUND');
  const now = new Date();
  const since = new Date((Math.floor(now.getTime() / HOUR_MS) + 1 - DOSSIER_HOURS) * HOUR_MS);
  const single = isSingleAddress(range);
  const known = single ? [formatAddress(range), ...(client === null ? [] : [client])] : [];
  const [seen, active, total, past, lists, events, platform, attacks, hours, location] = await Promise.all([
    sitesOf(sql, cidr, client),
    activeBansOf(sql, cidr, now),
    banCount(sql, { cidr }, now),
    pastBansOf(sql, cidr, now),
    listsOf(sql, cidr),
    client === null ? [] : eventsOf(sql, client),
    readProtectionSettings(sql),
    single ? attacksOf(sql, known, since) : [],
    single ? attackHoursOf(sql, known, since) : [],
    locationOf(runtime, formatAddress(range)),
  ]);
  const seenAt = new Map(seen.map((site) => [site.siteId, site.seenAt]));
  const ids = [...new Set([...(siteId === undefined ? [] : [siteId]), ...seenAt.keys()])].slice(0, DOSSIER_SITES);
  const [found, deciding] = await Promise.all([siteFacts(sql, ids), decidingBans(sql, cidr, ids, now)]);
  const clusters = await clusterFacts(sql, cidr, [...new Set(found.map(({ clusterId }) => clusterId))]);

  const banOf = (site: string | null) => deciding.find((ban) => ban.siteId === site) ?? null;
  const listOf = (kind: 'allow' | 'block') => lists.find((list) => list.kind === kind && list.covers) ?? null;
  const judge = (cluster: ClusterFacts, site: SiteFacts | null): Verdict =>
    verdictOf({
      platformBan: decider(banOf(null)),
      siteBan: site && decider(banOf(site.siteId)),
      allowedBy: entryOf(listOf('allow')),
      blockedBy: entryOf(listOf('block')),
      ...factsOfCluster(cluster),
      platformAttack: platform.underAttack ? platform.underAttackChallenge : null,
      ...factsOfSite(site),
    });
  const byId = new Map(found.map((site) => [site.siteId, site]));
  const clusterById = new Map(clusters.map((cluster) => [cluster.clusterId, cluster]));
  return {
    address: single ? formatAddress(range) : cidr,
    cidr,
    single,
    clusters: clusters
      .slice(0, DOSSIER_CLUSTERS)
      .map((cluster) => ({ clusterId: cluster.clusterId, clusterName: cluster.clusterName, ...judge(cluster, null) })),
    sites: ids.flatMap((id) => {
      const site = byId.get(id);
      const cluster = site && clusterById.get(site.clusterId);
      // Deleted between the questions.
      if (!site || !cluster) return [];
      const { siteName, clusterId } = site;
      const at = seenAt.get(id)?.toISOString() ?? null;
      return [
        { siteId: id, siteName, clusterId, clusterName: cluster.clusterName, seenAt: at, ...judge(cluster, site) },
      ];
    }),
    bans: { items: active.map(presentBan), total },
    pastBans: past.map(presentBan),
    lists: lists.map((list) => ({ ...list, entry: canonical(list.entry) })),
    events: events.map(presentEvent),
    location,
    attacks: {
      from: since.toISOString(),
      matched: byHour(hours, 'matched'),
      blocked: byHour(hours, 'blocked'),
      items: attacks.map(presentAttack),
    },
  };
}

function readRange({ address, prefix }: Input<typeof addresses.get>): Cidr {
  if (!parseAddress(address)) badField('/address', 'cidr', { accepted: 'an IPv4 or IPv6 address' });
  return (
    parseCidr(prefix === undefined ? address : `${address}/${prefix}`) ??
    badField('/prefix', 'maximum', { comparison: '<=', limit: address.includes(':') ? 128 : 32 })
  );
}

/** What nodes call the client that has the range; null where it is more than one. */
function clientOf(range: Cidr): string | null {
  if (range.family === 4) return isSingleAddress(range) ? formatAddress(range) : null;
  return range.prefix < IPV6_CLIENT ? null : formatCidr(parseCidr(`${formatAddress(range)}/${IPV6_CLIENT}`)!);
}

function factsOfCluster({ clientIp, trusted, nodes, kernelNodes, believing }: ClusterFacts) {
  const { mode } = CLIENT_IP.read(clientIp);
  return {
    trustedProxy: trusted,
    claimed: mode === 'proxy_protocol' && believing > 0,
    direct: mode === 'direct',
    nodes,
    kernelNodes,
  } satisfies Partial<Facts>;
}

function factsOfSite(site: SiteFacts | null) {
  const settings: ProtectionOfSite = { ...DEFAULT_PROTECTION, ...site?.protection };
  return {
    disabled: site !== null && !site.enabled,
    siteAttack: settings.underAttack ? settings.underAttackChallenge : null,
    level: LEVELS[site?.level ?? 0]!,
  } satisfies Partial<Facts>;
}

function decider(ban: AddressBan | null): Facts['platformBan'] {
  return ban && { id: ban.id, cidr: canonical(ban.cidr), scope: ban.scope, expiresAt: ban.expiresAt.toISOString() };
}

function entryOf(list: { id: string; name: string; entry: string } | null): Facts['allowedBy'] {
  return list && { id: list.id, name: list.name, entry: canonical(list.entry) };
}

/** The database writes a few IPv6 addresses with an IPv4 tail; the canonical form does not. */
function canonical(text: string): string {
  return formatCidr(parseCidr(text)!);
}

function presentBan({ createdAt, expiresAt, liftedAt, ...ban }: AddressBan): Dossier['pastBans'][number] {
  return {
    ...ban,
    cidr: canonical(ban.cidr),
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
    liftedAt: liftedAt?.toISOString() ?? null,
  };
}

function presentEvent({ nodeId, nodeName, occurredAt, level, ...event }: AddressEvent): Dossier['events'][number] {
  return {
    ...event,
    node: nodeId === null ? null : { id: nodeId, name: nodeName! },
    occurredAt: occurredAt.toISOString(),
    level: LEVELS[level]!,
  };
}

function presentAttack({
  nodeId,
  nodeName,
  occurredAt,
  waf,
  ...attack
}: AddressAttack): Dossier['attacks']['items'][number] {
  const { requestId, method, path, score, threshold, blocked, rules } = waf;
  return {
    ...attack,
    node: nodeId === null ? null : { id: nodeId, name: nodeName! },
    occurredAt: occurredAt.toISOString(),
    requestId,
    method,
    path,
    score,
    threshold,
    blocked,
    rules,
  };
}

function byHour<K extends 'matched' | 'blocked'>(
  rows: readonly ({ hour: number } & Record<K, number>)[],
  of: K,
): number[] {
  const counts = new Array<number>(DOSSIER_HOURS).fill(0);
  for (const row of rows) if (counts[row.hour] !== undefined) counts[row.hour]! += row[of];
  return counts;
}
