// A node with a correct certificate that does its worst.
import { setTimeout as sleep } from 'node:timers/promises';
import { create, toBinary } from '@bufbuild/protobuf';
import { ReportStatsRequestSchema, RuleEvent } from '../../proto/gen/svc/node/v1/node_pb.js';
import { SecurityEventKind } from '../../proto/gen/svc/node/v1/security_pb.js';
import { CallRefused, type Connection } from './connection.ts';

/** A ban of an hour, as a node reports it. */
export function reportedBan(siteId: string, cidr: string) {
  const now = BigInt(Date.now());
  return { siteId, cidr, reason: 'cc_ip_rate', createdAtMs: now, expiresAtMs: now + 3_600_000n, windowSeconds: 10 };
}

/**
 * Everything that a certificate allows, as fast as it goes, until the signal. `refusals`: what the console said against it.
 */
export function doItsWorst(
  connect: () => Connection,
  siteId: string,
  until: AbortSignal,
): { done: Promise<unknown>; refusals: Set<string> } {
  const minute = BigInt(Math.floor(Date.now() / 60_000) * 60);
  const refusals = new Set<string>();
  const rules = Array.from({ length: 140 }, (_, index) => ({
    ruleId: `r${index}`,
    event: RuleEvent.LOGGED,
    count: 1n,
  }));
  const counts = (sequence: number) =>
    toBinary(
      ReportStatsRequestSchema,
      create(ReportStatsRequestSchema, {
        sequence: BigInt(sequence),
        minutes: Array.from({ length: 140 }, (_, ago) => ({ siteId, minute: minute - 60n * BigInt(ago), rules })),
      }),
    );
  const batches = Array.from({ length: 8 }, (_, index) => counts(index + 1));
  const large = new Uint8Array(8 * 1024 * 1024);
  const addresses = (turn: number) =>
    Array.from({ length: 1_000 }, (_, index) =>
      reportedBan(siteId, `46.${turn % 256}.${index >> 8}.${index % 256}/32`),
    );
  const events = (turn: number) =>
    Array.from({ length: 500 }, (_, index) => ({
      id: `e-${turn}-${index}`,
      siteId: index % 2 ? siteId : 'foreign',
      kind: SecurityEventKind.SITE_LEVEL,
      occurredAtMs: BigInt(Date.now() - index * 86_400_000),
      level: 1,
    }));
  const attacks: ((connection: Connection, turn: number) => Promise<unknown>)[] = [
    (connection, turn) => connection.call('reportBans', { bans: addresses(turn) }),
    (connection, turn) => connection.call('reportSecurity', { events: events(turn), hasState: true }),
    (connection, turn) => connection.callEncoded('reportStats', batches[turn % batches.length]!),
    (connection) => connection.callEncoded('reportVitals', large),
    (connection) => connection.call('getBans', {}),
    (connection) => connection.call('getConfig', {}),
    (connection) => connection.call('getAcmeTokens', {}),
    (connection) => connection.call('applied', {}),
    (connection) => connection.call('renewCertificate', { csrPem: 'none' }),
  ];
  const work = async (attack: (typeof attacks)[number]) => {
    let connection = connect();
    for (let turn = 0; !until.aborted; turn++) {
      try {
        if (connection.closed) connection = connect();
        await attack(connection, turn);
      } catch (error) {
        if (!(error instanceof CallRefused)) throw error;
        refusals.add(error.message);
        // The two cores of a test machine are shared with the honest nodes, as those of a machine of its own are not.
        await sleep(20);
      }
    }
    connection.destroy();
  };
  const workers = attacks.flatMap((attack) => Array.from({ length: 6 }, () => work(attack)));
  return { done: Promise.all(workers), refusals };
}
