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
import { AcmePositionSchema, type GetAcmeTokensResponse } from '../../proto/gen/svc/node/v1/certificates_pb.js';
import { type GetConfigRequest, type GetConfigResponse, Track } from '../../proto/gen/svc/node/v1/config_pb.js';
import {
  type AppliedRequest,
  type HeartbeatRequest,
  type HeartbeatResponse,
  HeartbeatResponseSchema,
  type Reached,
  type ReportVitalsRequest,
  type ReportVitalsResponseSchema,
  VitalWatchSchema,
} from '../../proto/gen/svc/node/v1/node_pb.js';
import type { Runtime } from '../../runtime/runtime.ts';
import { appliedSpread } from './applied-spread.ts';
import { judge, judgeHeartbeat, ownTarget } from './claims.ts';
import { readBeat, readPosition, readSteps } from './heartbeat.ts';
import type { NodeIdentity } from './identity.ts';
import type { NodeReports } from './node-reports.ts';
import type { Propagation } from './propagation.ts';
import type { StatsIngest } from './stats-ingest.ts';
import type { Turns } from './turns.ts';
import type { VitalIngest } from './vital-ingest.ts';
import type { VitalWatches } from './vital-watches.ts';
import { ACME, type ClusterFeed } from './watch/cluster-feed.ts';
import type { WatchHub } from './watch/watch-hub.ts';

const HEARTBEAT_SECONDS = 15;
/** Where a node is that says nothing: one that has lost what it had must not be taken for one that answers. */
const NO_ANSWERS = create(AcmePositionSchema);
const RENEW_MS = (NODE_DAYS * 86_400_000) / 3;

export interface CallContext {
  runtime: Runtime;
  hub: WatchHub;
  reports: NodeReports;
  propagation: Propagation;
  stats: StatsIngest;
  vitals: VitalIngest;
  watches: VitalWatches;
  /** Lets a bounded number of pulls read at once, so that a thousand of them leave connections to everybody else. */
  pulls: Turns;
  /** The same for reports that are stored before they are answered. */
  writes: Turns;
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
  const bans = request.bans?.position;
  const position = readPosition(node.nodeId, now, { ...request, bans, acme: request.acme ?? NO_ANSWERS });
  noteReached(context, node, position, { config: [], bans: [] });
  await context.reports.heartbeat(node, { ...beat, missingFeatures }, position, now);
  const claim = { config: request.config, bans };
  const [unproven, watch] = await Promise.all([
    judgeHeartbeat(context, feed, node, claim),
    context.watches.of(node.clusterId, latestOf(feed)),
  ]);
  return create(HeartbeatResponseSchema, {
    target: ownTarget(feed.target(now.getTime(), node), unproven, claim),
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
  const position = readPosition(node.nodeId, now, request);
  const reached = noteReached(context, node, position, { config: request.configSteps, bans: request.bansSteps });
  // What people see is when it was enforced, not when the node came to say so.
  if (position.config && reached.config) position.config.at = new Date(reached.config);
  if (position.bans && reached.bans) position.bans.at = new Date(reached.bans);
  context.reports.applied(node, position);
}

/** Answers when each position of the report was reached, milliseconds. */
function noteReached(
  { propagation }: CallContext,
  { nodeId }: NodeIdentity,
  { at, config, bans, acme }: PositionRow,
  steps: Record<'config' | 'bans', readonly Reached[]>,
): Partial<Record<'config' | 'bans', number>> {
  const now = at.getTime();
  const note = (feed: 'config' | 'bans', epoch: bigint, number: bigint): number => {
    const read = readSteps(number, steps[feed], now);
    propagation.reached(nodeId, feed, epoch, read, now);
    return read.at(-1)!.at;
  };
  if (acme) propagation.reached(nodeId, ACME, acme.epoch, [{ number: acme.sequence, at: now }], now);
  return {
    ...(config ? { config: note('config', config.epoch, config.revision) } : {}),
    ...(bans ? { bans: note('bans', bans.epoch, bans.sequence) } : {}),
  };
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
  return pulls.take(node.nodeId, async () => {
    const read = () => answerGetConfig(runtime.pools.channel, node.clusterId, feed.trackOf(node), request);
    let answer = await read();
    // A base that is refused is one that the node never had, or one that the database has forgotten.
    const refused =
      base && request.pageToken === '' && base.epoch >= feed.config.epoch && answer?.result.case !== 'delta';
    if (refused && (await judge(context, node, { config: base, bans: undefined })).began) answer = await read();
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
  return pulls.take(node.nodeId, () => readAcmeTokens(runtime.pools.channel, node.clusterId));
}

export async function getBans(
  context: CallContext,
  node: NodeIdentity,
  request: GetBansRequest,
): Promise<GetBansResponse> {
  const feed = await feedOf(context, node);
  const { runtime, pulls } = context;
  const { after } = request;
  return pulls.take(node.nodeId, async () => {
    const read = () => answerGetBans(runtime.pools.channel, node.clusterId, request);
    let answer = await read();
    const refused = answer.reset && after && after.epoch >= feed.bans.epoch;
    if (refused && (await judge(context, node, { config: undefined, bans: after })).began) answer = await read();
    const { position } = answer;
    if (position) position.mark = (await positionMarks(runtime)).bans(node.clusterId, position);
    return answer;
  });
}
