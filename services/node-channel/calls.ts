// The unary calls of an authenticated node: plain functions of (identity, request).
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { NODE_DAYS } from '../../mixins/certificate-authority.ts';
import { answerGetBans } from '../../models/bans/ban-feed.ts';
import { readAcmeTokens } from '../../models/certificates/acme-token.ts';
import { answerGetConfig } from '../../models/config/get-config.ts';
import type { PositionRow } from '../../models/nodes/node-state.ts';
import { type PositionMarks, positionMarks } from '../../pipeline/position-marks.ts';
import type { GetBansRequest, GetBansResponse } from '../../proto/gen/svc/node/v1/bans_pb.js';
import type { GetAcmeTokensResponse } from '../../proto/gen/svc/node/v1/certificates_pb.js';
import { type GetConfigRequest, type GetConfigResponse, Track } from '../../proto/gen/svc/node/v1/config_pb.js';
import type { FeedPosition, GetFeedRequest, GetFeedResponseSchema } from '../../proto/gen/svc/node/v1/feeds_pb.js';
import {
  type AppliedRequest,
  type HeartbeatRequest,
  type HeartbeatResponse,
  HeartbeatResponseSchema,
  type ReportVitalsRequest,
  type ReportVitalsResponseSchema,
  VitalWatchSchema,
} from '../../proto/gen/svc/node/v1/node_pb.js';
import type { FeedPlace, PositionReport } from '../../runtime/feed-wire.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { appliedSpread } from './applied-spread.ts';
import { claimOf, judge, judgeHeartbeat, ownTarget } from './claims.ts';
import { countRepair } from './feed-metrics.ts';
import { readBeat, readPosition, readSteps } from './heartbeat.ts';
import type { NodeIdentity } from './identity.ts';
import type { LogIngest } from './log-ingest.ts';
import type { LogTails } from './log-tails.ts';
import type { NodeReports } from './node-reports.ts';
import type { Propagation } from './propagation.ts';
import type { StatsIngest } from './stats-ingest.ts';
import type { Turns } from './turns.ts';
import type { VitalIngest } from './vital-ingest.ts';
import type { VitalWatches } from './vital-watches.ts';
import { type ClusterFeed, CONFIG } from './watch/cluster-feed.ts';
import type { WatchHub } from './watch/watch-hub.ts';

const HEARTBEAT_SECONDS = 15;
const RENEW_MS = (NODE_DAYS * 86_400_000) / 3;

export interface CallContext {
  runtime: Runtime;
  hub: WatchHub;
  reports: NodeReports;
  propagation: Propagation;
  stats: StatsIngest;
  logs: LogIngest;
  tails: LogTails;
  vitals: VitalIngest;
  watches: VitalWatches;
  /** Lets a bounded number of pulls read at once, so that a thousand of them leave connections to everybody else. */
  pulls: Turns;
  /** The same for what nodes lack of feeds by name: they wait for each other, and no ban waits for them. */
  repairs: Turns;
  /** The same for reports that are stored before they are answered. */
  writes: Turns;
  /** The same for reports of lost bans, which come from every node at the same time. */
  losses: Turns;
  /** Names and addresses that kernel bans must never drop. */
  consoleAddresses: () => string[];
}

async function feedOf(context: CallContext, node: NodeIdentity): Promise<ClusterFeed> {
  const feed = await context.hub.feed(node.clusterId);
  if (!feed) throw new ConnectError('the cluster was deleted', Code.NotFound);
  return feed;
}

export async function heartbeat(
  context: CallContext,
  node: NodeIdentity,
  request: HeartbeatRequest,
  remoteAddress: string | null,
): Promise<HeartbeatResponse> {
  const now = new Date();
  const feed = await feedOf(context, node);
  const beat = readBeat(node, request, remoteAddress, now);
  if (beat.features.length !== node.features.size || beat.features.some((name) => !node.features.has(name))) {
    node.features = new Set(beat.features);
    context.hub.retarget(node.nodeId);
  }
  const missingFeatures = feed.missingFeatures(node);
  const report = { ...request, bans: request.bans?.position };
  const position = readPosition(node, now, report, context.runtime.feeds, true);
  noteReached(context, node, position, {});
  await context.reports.heartbeat(node, { ...beat, missingFeatures }, position, now);
  const claim = claimOf(feed, node, report);
  const [unproven, watch] = await Promise.all([
    judgeHeartbeat(context, feed, node, claim),
    context.watches.of(node.clusterId, latestOf(feed)),
  ]);
  return create(HeartbeatResponseSchema, {
    target: ownTarget(context.runtime, feed.target(now.getTime(), node), unproven, claim),
    intervalSeconds: HEARTBEAT_SECONDS,
    renewCertificate: node.certificateNotAfter.getTime() - now.getTime() < RENEW_MS,
    serverTimeMs: BigInt(now.getTime()),
    missingFeatures,
    consoleAddresses: context.consoleAddresses(),
    appliedSpreadMs: appliedSpread(context.hub.streamCount),
    challengeKeysVersion: feed.keysVersion,
    sessionTicketKeysVersion: feed.ticketKeysVersion,
    vitalWatch: create(VitalWatchSchema, watch ?? {}),
  });
}

/** The latest revision of the cluster, on whichever track, as far as this process knows. */
function latestOf(feed: ClusterFeed): bigint {
  const { revision } = feed.headOf(Track.STABLE);
  const canary = feed.headOf(Track.CANARY).revision;
  if (canary > revision) return canary;
  return revision;
}

/** Adds up what a node tells of watched sites; answers what is watched now. */
export async function reportVitals(
  context: CallContext,
  node: NodeIdentity,
  request: ReportVitalsRequest,
): Promise<MessageInitShape<typeof ReportVitalsResponseSchema>> {
  const feed = await feedOf(context, node);
  const watch = await context.vitals.report(node, request, { epoch: feed.config.epoch, head: latestOf(feed) });
  return { vitalWatch: create(VitalWatchSchema, watch ?? {}) };
}

export function applied(context: CallContext, node: NodeIdentity, request: AppliedRequest): void {
  const now = new Date();
  const report: PositionReport = { ...request, feeds: placesOf(request), feedSteps: request.feeds };
  const position = readPosition(node, now, { ...report, failed: request.failed }, context.runtime.feeds, false);
  // What people see is when it was enforced, not when the node came to say so.
  noteReached(context, node, position, report);
  context.reports.applied(node, position);
}

function placesOf({ feeds }: AppliedRequest): FeedPosition[] {
  return feeds.flatMap(({ position }) => position ?? []);
}

/** Notes when each position of the report was reached, in the position too. */
function noteReached(
  { propagation, runtime: { feeds } }: CallContext,
  { nodeId }: NodeIdentity,
  { at, config, places }: PositionRow,
  report: PositionReport,
): void {
  const now = at.getTime();
  const note = (name: string, place: { at: Date; epoch: bigint }, number: bigint): void => {
    const steps = readSteps(number, feeds.get(name).wire.steps(report), now);
    propagation.reached(nodeId, name, place.epoch, steps, now);
    place.at = new Date(steps.at(-1)!.at);
  };
  if (config) note(CONFIG, config, config.revision);
  for (const [name, place] of places) note(name, place, place.sequence);
}

export async function getConfig(
  context: CallContext,
  node: NodeIdentity,
  request: GetConfigRequest,
): Promise<GetConfigResponse> {
  const feed = await feedOf(context, node);
  if (feed.isFrozen(node)) {
    throw new ConnectError(`the node lacks ${feed.missingFeatures(node).join(', ')}`, Code.FailedPrecondition);
  }
  const { runtime, pulls } = context;
  const { base } = request;
  countRepair(runtime, feed.configFeedOf(node));
  return pulls.take(node.nodeId, async () => {
    const read = () => answerGetConfig(runtime.pools.channel, node.clusterId, feed.trackOf(node), request);
    let answer = await read();
    // A base that is refused is one that the node never had, or one that the database has forgotten.
    const refused =
      base && request.pageToken === '' && base.epoch >= feed.config.epoch && answer?.result.case !== 'delta';
    if (refused && (await judge(context, node, { config: base, feeds: new Map() })).began) answer = await read();
    if (!answer) throw new ConnectError('the cluster was deleted', Code.NotFound);
    return withConfigMark(await positionMarks(runtime), node.clusterId, answer);
  });
}

/** The answer with the mark of the position that it leads to. */
function withConfigMark(marks: PositionMarks, clusterId: string, answer: GetConfigResponse): GetConfigResponse {
  const { result } = answer;
  const position = result.case === 'delta' ? result.value : result.value?.checkpoint;
  if (position) position.mark = marks.config(clusterId, position);
  return answer;
}

/** Everything that certificate authorities are to be answered by nodes of the cluster. */
export function getAcmeTokens({ runtime, pulls }: CallContext, node: NodeIdentity): Promise<GetAcmeTokensResponse> {
  countRepair(runtime, 'acme');
  return pulls.take(node.nodeId, () => readAcmeTokens(runtime.pools.channel, node.clusterId));
}

export async function getBans(
  context: CallContext,
  node: NodeIdentity,
  request: GetBansRequest,
): Promise<GetBansResponse> {
  const { runtime, pulls } = context;
  const { after } = request;
  countRepair(runtime, 'bans');
  return pulls.take(node.nodeId, async () => {
    const read = () => answerGetBans(runtime.pools.channel, node.clusterId, request);
    const answer = await readOnce(context, node, 'bans', after, read);
    const { position } = answer;
    if (position) position.mark = (await positionMarks(runtime)).feed('bans', node.clusterId, position);
    return answer;
  });
}

/** What the node lacks of a feed by name. Its place in line is not that of configurations and bans. */
export async function getFeed(
  context: CallContext,
  node: NodeIdentity,
  { feed: name, after, pageToken }: GetFeedRequest,
): Promise<MessageInitShape<typeof GetFeedResponseSchema>> {
  const { runtime, repairs } = context;
  const feed = runtime.feeds.find(name);
  if (!feed?.repair) throw new ConnectError(`there is no feed ${name.slice(0, 32)} by name`, Code.NotFound);
  const repair = feed.repair(runtime);
  countRepair(runtime, name);
  const from = after ? { epoch: after.epoch, position: after.sequence } : null;
  return repairs.take(node.nodeId, async () => {
    const read = async () => {
      try {
        return await repair(node.clusterId, from, pageToken);
      } catch (error) {
        if (error instanceof RangeError) throw new ConnectError(error.message, Code.InvalidArgument);
        throw error;
      }
    };
    const { place, reset, body, nextPageToken } = await readOnce(context, node, name, after, read);
    const position = { feed: name, epoch: place.epoch, sequence: place.position };
    const mark = (await positionMarks(runtime)).feed(name, node.clusterId, position);
    return { position: { ...position, mark }, reset, body, nextPageToken };
  });
}

/**
 * Reads what a node lacks; again when everything takes the place of what it has and its place proves that the database has
 * forgotten something.
 */
async function readOnce<Answer extends { reset: boolean }>(
  context: CallContext,
  node: NodeIdentity,
  name: string,
  after: FeedPlace | undefined,
  read: () => Promise<Answer>,
): Promise<Answer> {
  const cluster = await feedOf(context, node);
  const answer = await read();
  const isRefused = answer.reset && after && after.epoch >= cluster.tracks.get(name)!.epoch;
  if (!isRefused) return answer;
  const { began } = await judge(context, node, { feeds: new Map([[name, after]]) });
  return began ? read() : answer;
}
