// Bans that a node held and that the console's history lacks: what a restore has lost.
import { Code, ConnectError } from '@connectrpc/connect';
import { Ban as ListedBan } from '../../contract/resources/bans.ts';
import { parseCidr } from '../../contract/scalars/cidr.ts';
import { type LostBan, MAX_LOST_REPORT, recordLostBans } from '../../models/bans/lost-ban.ts';
import { type Ban, BanSource, type ReportLostBansRequest } from '../../proto/gen/svc/node/v1/bans_pb.js';
import { systemCall } from '../../runtime/call.ts';
import { write } from '../../runtime/write.ts';
import type { CallContext } from './calls.ts';
import { text } from './heartbeat.ts';
import type { NodeIdentity } from './identity.ts';

const ID = /^[A-Za-z0-9_-]{1,128}$/;
const REASONS: ReadonlySet<string> = new Set(ListedBan.properties.reason.anyOf.map((reason) => reason.const));
const LONGEST_MS = 7 * 86_400_000;

/** Answers when they are committed. A report that comes twice counts once. */
export async function reportLostBans(
  { runtime, losses }: CallContext,
  node: NodeIdentity,
  request: ReportLostBansRequest,
): Promise<void> {
  if (request.bans.length > MAX_LOST_REPORT) {
    throw new ConnectError(`a report contains at most ${MAX_LOST_REPORT} bans`, Code.InvalidArgument);
  }
  const now = Date.now();
  const report = {
    epoch: request.epoch,
    bans: request.bans.flatMap((ban) => readLost(ban, now)),
    unnamed: Number(request.unnamed < 1_000_000n ? request.unnamed : 1_000_000n),
  };
  const taken = await losses.take(node.nodeId, () =>
    write(runtime, systemCall('restore'), { pool: 'bans' }, (tx) => recordLostBans(tx, node, report)),
  );
  // It reports again after it took over the present one.
  if (!taken) throw new ConnectError('the report is not of the present history', Code.FailedPrecondition);
}

/** Nodes are authenticated, not trusted: what is no ban is left out. */
function readLost(ban: Ban, now: number): LostBan[] {
  const cidr = parseCidr(text(ban.cidr, 64));
  const [createdAt, expiresAt] = [Number(ban.createdAtMs), Number(ban.expiresAtMs)];
  if (!cidr || !ID.test(ban.id) || (ban.siteId !== '' && !ID.test(ban.siteId))) return [];
  if (!(createdAt >= 0) || !(expiresAt > now) || createdAt > expiresAt) return [];
  return [
    {
      id: ban.id,
      siteId: ban.siteId === '' ? null : ban.siteId,
      cidr,
      source: ban.source === BanSource.AUTO ? 'auto' : 'manual',
      reason: REASONS.has(ban.reason) ? ban.reason : 'other',
      createdAt: new Date(Math.min(createdAt, now)),
      expiresAt: new Date(Math.min(expiresAt, now + LONGEST_MS)),
    },
  ];
}
