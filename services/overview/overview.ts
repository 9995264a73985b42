import { fail } from '../../contract/errors.ts';
import type { Output } from '../../contract/procedure.ts';
import { NODE_WORDS, type overview, SHOWN_REVISIONS } from '../../contract/resources/overview.ts';
import type { FoundAttention } from '../../mixins/attention.ts';
import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { clusterCount } from '../../models/clusters/cluster.ts';
import { subjectsOf } from '../../models/config/revision-subject.ts';
import { type Progress, readBansProgress, readRevisionsProgress } from '../../models/overview/change-progress.ts';
import { type FleetFacts, readFleetFacts } from '../../models/overview/fleet-facts.ts';
import { bansInForce, type NewestRevision, newestBanChange, newestRevisions } from '../../models/overview/overview.ts';
import { siteStates } from '../../models/overview/overview-sites.ts';
import { changeSpread, type PropagationFigures, propagationFigures } from '../../models/overview/propagation.ts';
import { latestTraffic } from '../../models/security/site-request-minute.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { FEATURES } from '../gen/features.ts';
import { type AttentionFacts, attentionList } from './attention.ts';

type Overview = Output<typeof overview.get>;
type Propagation = Overview['propagation']['config'];
type Sql = Runtime['pools']['api'];

/**
 * What the overview shows, of one cluster where one is named. `channel` answers what the check of the node channel found,
 * without waiting for one. Throws CLUSTER_NOT_FOUND.
 */
export async function readOverview(
  { pools }: Pick<Runtime, 'pools'>,
  clusterId: string | null,
  channel: () => AttentionFacts['channel'],
): Promise<Overview> {
  const sql = pools.api;
  const readAt = new Date().toISOString();
  const reading = readFleetFacts(sql, clusterId);
  const [{ view, counts, behind }, found, traffic, bans, changes, clusters] = await Promise.all([
    reading,
    readFound(sql, clusterId, reading),
    latestTraffic(sql, clusterId),
    bansInForce(sql, clusterId),
    readChanges(sql, clusterId),
    clusterCount(sql, clusterId),
  ]);
  if (clusterId !== null && clusters === 0) fail('CLUSTER_NOT_FOUND');
  const sites = siteStates(counts, behind, view.spans);
  const nodeStates = Object.fromEntries(
    NODE_WORDS.map((word) => [word, view.states[word] ?? 0]),
  ) as Overview['nodeStates'];
  const nodes = NODE_WORDS.reduce((sum, word) => sum + (word === 'disabled' ? 0 : nodeStates[word]), 0);
  const { items, total } = attentionList({
    found,
    // With a node that is connected, of whatever cluster, the channel evidently works.
    channel: nodes > 0 && !view.anyOnline ? channel() : null,
  });
  return {
    readAt,
    attention: items,
    attentionTotal: total,
    clusters,
    nodes,
    onlineNodes: view.online,
    nodeStates,
    sites: Object.values(sites).reduce((sum, count) => sum + count, 0),
    siteStates: sites,
    traffic: traffic && {
      minute: new Date(traffic.at).toISOString(),
      requestsPerSecond: traffic.requests / 60,
    },
    bans,
    ...changes,
  };
}

async function readFound(sql: Sql, clusterId: string | null, fleet: Promise<FleetFacts>): Promise<FoundAttention[]> {
  const found = await Promise.all(
    FEATURES.map((feature: ServiceFeature) => feature.attention?.find(sql, clusterId, fleet) ?? []),
  );
  return found.flat();
}

async function readChanges(sql: Sql, clusterId: string | null): Promise<Pick<Overview, 'propagation' | 'revisions'>> {
  const [revisions, ban, figures] = await Promise.all([
    newestRevisions(sql, clusterId, SHOWN_REVISIONS),
    newestBanChange(sql, clusterId),
    propagationFigures(sql, clusterId),
  ]);
  const [newest] = revisions;
  const about = revisions.map(({ reasonCode, reasonParams, ...one }) => ({
    ...one,
    reason: reasonCode,
    params: reasonParams,
  }));
  const [subjects, config, bans] = await Promise.all([
    subjectsOf(sql, about),
    newest ? readLatestRevision(sql, newest) : null,
    ban ? readLatestBan(sql, ban, clusterId) : null,
  ]);
  return {
    propagation: {
      config: { latest: config, recent: recentOf('config', figures) },
      bans: { latest: bans, recent: recentOf('bans', figures) },
    },
    revisions: revisions.map(({ createdAt, ...revision }, index) => ({
      ...revision,
      subject: subjects[index] ?? null,
      createdAt: createdAt.toISOString(),
    })),
  };
}

async function readLatestRevision(
  sql: Sql,
  { clusterId, clusterName, revision }: NewestRevision,
): Promise<Propagation['latest']> {
  const [[progress], spread] = await Promise.all([
    readRevisionsProgress(sql, [{ clusterId, revision }]),
    changeSpread(sql, { feed: 'config', clusterId, number: revision }, null),
  ]);
  return progress
    ? { id: `${clusterId}=${revision}`, kind: 'config', clusterName, ...latest(progress), ...spread }
    : null;
}

async function readLatestBan(
  sql: Sql,
  ban: { epoch: string; seq: string },
  within: string | null,
): Promise<Propagation['latest']> {
  const [progress] = await readBansProgress(sql, [ban], within);
  if (!progress) return null;
  const change = { feed: 'bans', clusterId: progress.clusterId ?? '', number: ban.seq };
  const spread = await changeSpread(sql, change, within);
  return { id: `ban=${ban.epoch}:${ban.seq}`, kind: 'ban', clusterName: null, ...latest(progress), ...spread };
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
