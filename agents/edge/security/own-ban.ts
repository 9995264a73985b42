// A ban this node made by itself, with its times on the monotonic clock.
import { create } from '@bufbuild/protobuf';
import { type OwnBan, OwnBanSchema } from '../../../proto/gen/svc/node/v1/bans_pb.js';
import { MAX_BAN_MS } from '../bans/ban-store.ts';
import { formatCidr, isBannable, parseCidr } from '../bans/cidr.ts';
import type { Clock } from '../lib/clock.ts';

export interface OwnBanRow {
  /** "" = global. */
  siteId: string;
  /** Canonical, with prefix length. */
  cidr: string;
  /** Both on the monotonic clock. */
  createdAt: number;
  expiresAt: number;
  /** What led to it, as Caddy said. */
  why: Pick<OwnBan, 'reason' | 'metric' | 'observed' | 'threshold' | 'windowSeconds'>;
}

export function ownBanKey(siteId: string, cidr: string): string {
  return `${siteId} ${cidr}`;
}

/** Reads a ban with times of this machine's wall clock; undefined when it is malformed. */
export function readOwnBan(ban: OwnBan, clock: Clock): OwnBanRow | undefined {
  const cidr = parseCidr(ban.cidr);
  if (!cidr || !isBannable(cidr)) return undefined;
  const offset = clock.monotonic() - clock.wall();
  const { siteId, reason, metric, observed, threshold, windowSeconds } = ban;
  return {
    siteId,
    cidr: formatCidr(cidr),
    createdAt: Number(ban.createdAtMs) + offset,
    expiresAt: Math.min(Number(ban.expiresAtMs) + offset, clock.monotonic() + MAX_BAN_MS),
    why: { reason, metric, observed, threshold, windowSeconds },
  };
}

/** The ban with times of a clock that is ahead of the monotonic one by `offsetMs`. */
export function writeOwnBan({ siteId, cidr, createdAt, expiresAt, why }: OwnBanRow, offsetMs: number): OwnBan {
  return create(OwnBanSchema, {
    siteId,
    cidr,
    createdAtMs: BigInt(Math.round(createdAt + offsetMs)),
    expiresAtMs: BigInt(Math.round(expiresAt + offsetMs)),
    ...why,
  });
}
