import type { Output } from '../../contract/procedure.ts';
import { NODE_WORDS, type overview } from '../../contract/resources/overview.ts';
import { type Progress, readBanProgress, readRevisionProgress } from '../../models/change-progress.ts';
import { clusterCount } from '../../models/cluster.ts';
import { bansInForce, type NewestRevision, newestBanChange, newestRevisions } from '../../models/overview.ts';
import { fleetView } from '../../models/overview-nodes.ts';
import { siteStates } from '../../models/overview-sites.ts';
import { changeSpread, type PropagationFigures, propagationFigures } from '../../models/propagation.ts';
import { latestTraffic } from '../../models/site-request-minute.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { FoundAttention, ServiceFeature } from '../../runtime/service-feature.ts';
import { FEATURES } from '../gen/features.ts';
import { type AttentionFacts, attentionList } from './attention.ts';

type Overview = Output<typeof overview.get>;
type Propagation = Overview['propagation']['config'];
type Sql = Runtime['pools']['api'];

/** What the overview shows. `channel` answers what the check of the node channel found, without waiting for one. */
export async function readOverview({ pools }: Runtime, channel: () => AttentionFacts['channel']): Promise<Overview> {
  const sql = pools.api;
  const readAt = new Date().toISOString();
  const [[fleet, sites], found, traffic, bans, changes, clusters] = await Promise.all([
    readFleet(sql),
    readFound(sql),
    latestTraffic(sql),
    bansInForce(sql),
    readChanges(sql),
    clusterCount(sql),
  ]);
  const nodeStates = Object.fromEntries(
    NODE_WORDS.map((word) => [word, fleet.states[word] ?? 0]),
  ) as Overview['nodeStates'];
  const nodes = NODE_WORDS.reduce((sum, word) => sum + (word === 'disabled' ? 0 : nodeStates[word]), 0);
  const { items, total } = attentionList({
    groups: fleet.groups,
    found,
    // With a node that is connected, the channel evidently works.
    channel: nodes > 0 && fleet.online === 0 ? channel() : null,
  });
  return {
    readAt,
    attention: items,
    attentionTotal: total,
    clusters,
    nodes,
    onlineNodes: fleet.online,
    nodeStates,
    sites: sites.live + sites.partial + sites.pending + sites.disabled,
    siteStates: sites,
    traffic: traffic && {
      minute: new Date(traffic.at).toISOString(),
      requestsPerSecond: traffic.requests / 60,
    },
    bans,
    ...changes,
  };
}

async function readFleet(sql: Sql) {
  const fleet = await fleetView(sql, NODE_WORDS);
  return [fleet, await siteStates(sql, fleet.spans)] as const;
}

async function readFound(sql: Sql): Promise<FoundAttention[]> {
  const found = await Promise.all(FEATURES.map((feature: ServiceFeature) => feature.attention?.(sql) ?? []));
  return found.flat();
}

async function readChanges(sql: Sql): Promise<Pick<Overview, 'propagation' | 'revisions'>> {
  const [revisions, ban, figures] = await Promise.all([
    newestRevisions(sql),
    newestBanChange(sql),
    propagationFigures(sql),
  ]);
  const [newest] = revisions;
  const [config, bans] = await Promise.all([
    newest ? readLatestRevision(sql, newest) : null,
    ban ? readLatestBan(sql, ban) : null,
  ]);
  return {
    propagation: {
      config: { latest: config, recent: recentOf('config', figures) },
      bans: { latest: bans, recent: recentOf('bans', figures) },
    },
    revisions: revisions.map(({ createdAt, ...revision }) => ({ ...revision, createdAt: createdAt.toISOString() })),
  };
}

async function readLatestRevision(
  sql: Sql,
  { clusterId, clusterName, revision }: NewestRevision,
): Promise<Propagation['latest']> {
  const [progress, spread] = await Promise.all([
    readRevisionProgress(sql, clusterId, revision),
    changeSpread(sql, 'config', clusterId, revision),
  ]);
  return progress && { id: `${clusterId}=${revision}`, kind: 'config', clusterName, ...latest(progress), ...spread };
}

async function readLatestBan(sql: Sql, { epoch, seq }: { epoch: string; seq: string }): Promise<Propagation['latest']> {
  const progress = await readBanProgress(sql, epoch, seq);
  if (!progress) return null;
  const spread = await changeSpread(sql, 'bans', progress.clusterId ?? '', seq);
  return { id: `ban=${epoch}:${seq}`, kind: 'ban', clusterName: null, ...latest(progress), ...spread };
}

function latest({ clusterId, publishedAt, reason, nodes, done }: Progress) {
  return { clusterId, publishedAt: publishedAt.toISOString(), reason, nodes, done };
}

function recentOf(feed: string, figures: readonly PropagationFigures[]): Propagation['recent'] {
  const found = figures.find((one) => one.feed === feed);
  if (!found) return null;
  const { changes, complete, p50, p95, p99, slowest } = found;
  return { changes, complete, p50Ms: p50, p95Ms: p95, p99Ms: p99, slowest };
}
