// Which bans another history of the feed takes from a node, and what the node says of them.
import { create } from '@bufbuild/protobuf';
import {
  type Ban,
  BanSource,
  type ReportLostBansRequest,
  ReportLostBansRequestSchema,
} from '../../../proto/gen/svc/node/v1/bans_pb.js';
import type { BanRow } from './ban-store.ts';

/** Bans that are named; of more, their number. */
export const MAX_NAMED = 1000;
/** Clocks that differ a little make no ban shorter. */
const SHORTER_MS = 60_000;

/** Held bans that the new history lacks or ends earlier: those that it lacks were made, the others renewed, in the old one. */
export function lostRows(held: readonly BanRow[], kept: ReadonlyMap<string, Pick<BanRow, 'expiresAt'>>): BanRow[] {
  return held.filter(({ id, expiresAt }) => {
    const stays = kept.get(id);
    return stays === undefined || stays.expiresAt < expiresAt - SHORTER_MS;
  });
}

/**
 * The report of what `epoch` took. `before`: one that no console has taken yet. What it says of an earlier history is still
 * missing, unless the new one has it.
 */
export function lostReport(
  epoch: bigint,
  lost: readonly Ban[],
  kept: { has(id: string): boolean },
  before?: ReportLostBansRequest,
): ReportLostBansRequest {
  const earlier = before && before.epoch !== epoch ? before : undefined;
  const found = new Map(lost.map((ban) => [ban.id, ban]));
  for (const ban of earlier?.bans ?? []) if (!kept.has(ban.id) && !found.has(ban.id)) found.set(ban.id, ban);
  const bans = [...found.values()].sort(byWorth);
  return create(ReportLostBansRequestSchema, {
    epoch,
    bans: bans.slice(0, MAX_NAMED),
    unnamed: BigInt(Math.max(0, bans.length - MAX_NAMED)) + (earlier?.unnamed ?? 0n),
  });
}

/** What people decided comes before what nodes found; the newest first, because a backup knows the oldest. */
function byWorth(left: Ban, right: Ban): number {
  if (left.source !== right.source) return left.source === BanSource.MANUAL ? -1 : 1;
  return Number(right.createdAtMs - left.createdAtMs);
}
