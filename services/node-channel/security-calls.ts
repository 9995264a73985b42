// What a node asks and reports about attacks: the keys that sign passes, its own bans, security events and state.
import type { MessageInitShape } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { MAX_REPORTS, type ReportedBan, recordAutomaticBans } from '../../models/bans/automatic-ban.ts';
import { CHALLENGE_KEYS } from '../../models/clusters/challenge-key.ts';
import { storeSecurityReport } from '../../models/security/security-report.ts';
import type { OwnBan, ReportBansRequest } from '../../proto/gen/svc/node/v1/bans_pb.js';
import type { GetChallengeKeysResponseSchema, ReportSecurityRequest } from '../../proto/gen/svc/node/v1/security_pb.js';
import { write } from '../../runtime/write.ts';
import { callOf } from './call-of.ts';
import type { CallContext } from './calls.ts';
import { text } from './heartbeat.ts';
import type { NodeIdentity } from './identity.ts';
import { readSecurityReport } from './security-report.ts';

/** 9999-12-31: later times are no times. */
const LAST_TIME_MS = 253_402_300_799_000n;

/** The keys of the node's cluster; without any, version 0 and none. */
export async function getChallengeKeys(
  { runtime, pulls }: CallContext,
  node: NodeIdentity,
): Promise<MessageInitShape<typeof GetChallengeKeysResponseSchema>> {
  const { version, keys } = await pulls.take(node.nodeId, () =>
    CHALLENGE_KEYS.read(runtime.pools.channel, runtime.sealer, node.clusterId),
  );
  return { keys: { version, ...keys } };
}

/** Merges the bans a node made by itself; answers when they are committed. A ban reported twice is one. */
export async function reportBans(
  { runtime, writes }: CallContext,
  node: NodeIdentity,
  request: ReportBansRequest,
): Promise<void> {
  if (request.bans.length > MAX_REPORTS) {
    throw new ConnectError(`a report contains at most ${MAX_REPORTS} bans`, Code.InvalidArgument);
  }
  const reports = request.bans.flatMap(readOwnBan);
  if (reports.length === 0) return;
  const by = { id: node.nodeId, clusterId: node.clusterId };
  await writes.take(node.nodeId, () =>
    write(runtime, callOf(node, 'report'), { pool: 'bans' }, (tx) => recordAutomaticBans(tx, by, reports)),
  );
}

/** Stores events and the levels of the moment; answers when they are committed. An event reported twice is one. */
export async function reportSecurity(
  { runtime, writes }: CallContext,
  node: NodeIdentity,
  request: ReportSecurityRequest,
): Promise<void> {
  const now = new Date();
  const report = readSecurityReport(request, now);
  await writes.take(node.nodeId, () => storeSecurityReport(runtime.pools.channel, node, report, now));
}

/** What is no time is no ban; everything else is judged with the rules of automatic bans. */
function readOwnBan(ban: OwnBan): ReportedBan[] {
  const times = [ban.createdAtMs, ban.expiresAtMs];
  if (times.some((time) => time < 0n || time > LAST_TIME_MS)) return [];
  return [
    {
      siteId: ban.siteId === '' ? null : text(ban.siteId, 64),
      cidr: text(ban.cidr, 64),
      reason: text(ban.reason, 64),
      trigger: {
        metric: text(ban.metric, 64),
        observed: Number(ban.observed),
        threshold: Number(ban.threshold),
        windowSeconds: ban.windowSeconds,
      },
      createdAt: new Date(Number(ban.createdAtMs)),
      expiresAt: new Date(Number(ban.expiresAtMs)),
    },
  ];
}
