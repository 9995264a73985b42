// One node with a correct certificate does its worst: the reports of every other node arrive, and none is refused.
import { setTimeout as sleep } from 'node:timers/promises';
import { create, toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { CallRefused, type Connection } from '../../bench/fleet/connection.ts';
import { ReportStatsRequestSchema, RuleEvent } from '../../proto/gen/svc/node/v1/node_pb.js';
import { SecurityEventKind } from '../../proto/gen/svc/node/v1/security_pb.js';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { connectAs } from '../helpers/fleet.ts';
import { ReportingNode } from '../helpers/reporting-node.ts';
import { Api } from '../helpers/resources.ts';

const HONEST = 5;
const WORST_MS = 10_000;
const EVERY_MS = 500;
const MINUTE = BigInt(Math.floor(Date.now() / 60_000) * 60);

let running: TestConsole;
let api: Api;
let clusterId: string;
let siteId: string;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusterId = await api.cluster('fair');
  siteId = (await api.site(clusterId, 'fair.example')).id;
});
test.after.always('stop', () => running?.stop());

const ban = (cidr: string) => {
  const now = BigInt(Date.now());
  return { siteId, cidr, reason: 'cc_ip_rate', createdAtMs: now, expiresAtMs: now + 3_600_000n, windowSeconds: 10 };
};

/** What an honest node reports in one round: one ban and ten requests. */
async function reportRound(node: ReportingNode, index: number, round: number): Promise<void> {
  const { connection } = node;
  const counts = { sequence: BigInt(round), minutes: [{ siteId, minute: MINUTE, requests: 10n }] };
  await Promise.all([
    persistently(() => node.beat()),
    persistently(() => connection.call('reportBans', { bans: [ban(`45.${index}.1.${round}/32`)] })),
    persistently(() => connection.call('reportSecurity', { events: [], sites: [], hasState: true })),
    persistently(() => connection.call('reportStats', counts)),
  ]);
}

/** Again as an agent does when the database of a busy machine is late; a refusal is none of that. */
async function persistently(call: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await call();
      return;
    } catch (error) {
      if (!(error instanceof CallRefused) || error.code !== 'unavailable' || attempt === 10) throw error;
      await sleep(EVERY_MS);
    }
  }
}

/** Everything that a certificate allows, as fast as it goes, until the signal. */
function doItsWorst(node: ReportingNode, until: AbortSignal): { done: Promise<unknown>; refusals: Set<string> } {
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
        minutes: Array.from({ length: 140 }, (_, ago) => ({ siteId, minute: MINUTE - 60n * BigInt(ago), rules })),
      }),
    );
  const batches = Array.from({ length: 8 }, (_, index) => counts(index + 1));
  const large = new Uint8Array(8 * 1024 * 1024);
  const addresses = (turn: number) =>
    Array.from({ length: 1_000 }, (_, index) => ban(`46.${turn % 256}.${index >> 8}.${index % 256}/32`));
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
    let connection = connectAs(running, node.identity);
    for (let turn = 0; !until.aborted; turn++) {
      try {
        if (connection.closed) connection = connectAs(running, node.identity);
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

test.serial(
  'beside a node that does its worst, every ban and count of the others arrives and none is refused',
  async (t) => {
    const honest = await Promise.all(Array.from({ length: HONEST }, () => ReportingNode.enroll(running, clusterId)));
    const hostile = await ReportingNode.enroll(running, clusterId);
    t.teardown(() => {
      for (const node of [...honest, hostile]) node.stop();
    });
    await Promise.all([...honest, hostile].map((node) => node.beat()));
    const stop = new AbortController();
    t.teardown(() => stop.abort());
    const { done, refusals } = doItsWorst(hostile, stop.signal);
    const ends = performance.now() + WORST_MS;
    let rounds = 0;
    while (performance.now() < ends) {
      rounds += 1;
      await t.notThrowsAsync(Promise.all(honest.map((node, index) => reportRound(node, index, rounds))));
      await sleep(EVERY_MS);
    }
    await eventually(async () => (await api.ok('GET', `/nodes/${hostile.id}`)).authError?.startsWith('OVER_BUDGET_'), {
      what: 'the status of the node over its budget',
    });
    stop.abort();
    await done;
    t.true(
      [...refusals].some((message) => message.includes('over its budget')),
      [...refusals].join('\n'),
    );
    const { rows: bans } = await api.sql.raw("select count(*)::int from ban where cidr << '45.0.0.0/8'");
    t.is(bans[0].count, HONEST * rounds);
    const { rows: counts } = await api.sql.raw('select sum(requests)::int as sum from usage_minute where site_id = ?', [
      siteId,
    ]);
    t.is(counts[0].sum, HONEST * rounds * 10);
    for (const node of honest) t.is((await api.ok('GET', `/nodes/${node.id}`)).authError, null);
  },
);
