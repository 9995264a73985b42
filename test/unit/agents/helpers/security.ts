// Own bans, events, levels and keys for tests.
import { create } from '@bufbuild/protobuf';
import { SiteLevelStateSchema } from '../../../../proto/gen/svc/edge/v1/edge_pb.js';
import { type OwnBan, OwnBanLiftSchema, OwnBanSchema } from '../../../../proto/gen/svc/node/v1/bans_pb.js';
import { type SessionTicketKeys, SessionTicketKeysSchema } from '../../../../proto/gen/svc/node/v1/certificates_pb.js';
import {
  type ChallengeKeys,
  ChallengeKeysSchema,
  SecurityEventKind,
  SecurityEventSchema,
} from '../../../../proto/gen/svc/node/v1/security_pb.js';

/** An own ban that ends after `seconds`; global without a site. */
export function ownBan(cidr: string, now: number, seconds = 600, siteId = 's1'): OwnBan {
  return create(OwnBanSchema, {
    siteId,
    cidr,
    createdAtMs: BigInt(now),
    expiresAtMs: BigInt(now + seconds * 1000),
    reason: siteId === '' ? 'unknown_host_scan' : 'cc_ip_rate',
    metric: siteId === '' ? 'unknown_host_requests' : 'ip_qps',
    observed: 120n,
    threshold: 50n,
    windowSeconds: 10,
  });
}

export function lift(cidr: string, noLaterThan: number, siteId = 's1') {
  return create(OwnBanLiftSchema, { siteId, cidr, expiresNoLaterThanMs: BigInt(noLaterThan) });
}

export function levelEvent(id: string, now: number) {
  return create(SecurityEventSchema, {
    id,
    siteId: 's1',
    kind: SecurityEventKind.SITE_LEVEL,
    occurredAtMs: BigInt(now),
    level: 1,
    metric: 'site_qps',
  });
}

export function levels(siteId: string, level: number, paths: Record<string, number> = {}) {
  return create(SiteLevelStateSchema, {
    siteId,
    site: { level, calmMs: 1500n },
    paths: Object.entries(paths).map(([path, value]) => ({ path, state: { level: value } })),
  });
}

export function challengeKeys(version: number): ChallengeKeys {
  const key = (number: number) => ({ id: `k${number}`, secret: new Uint8Array(32).fill(number) });
  return create(ChallengeKeysSchema, {
    version: BigInt(version),
    next: key(version + 2),
    current: key(version + 1),
    ...(version > 1 ? { previous: key(version) } : {}),
  });
}

export function sessionTicketKeys(version: number): SessionTicketKeys {
  const key = (number: number) => new Uint8Array(32).fill(number);
  return create(SessionTicketKeysSchema, {
    version: BigInt(version),
    next: key(version + 2),
    current: key(version + 1),
    previous: version > 1 ? key(version) : new Uint8Array(),
  });
}
