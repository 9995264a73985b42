import { create, type MessageInitShape } from '@bufbuild/protobuf';
import test from 'ava';
import { type FeedRows, namedFeed } from '../../../../pipeline/named-feed.ts';
import { BanStatusSchema } from '../../../../proto/gen/svc/node/v1/bans_pb.js';
import { ConfigPositionSchema, FailedEntrySchema } from '../../../../proto/gen/svc/node/v1/config_pb.js';
import { FeedPositionSchema } from '../../../../proto/gen/svc/node/v1/feeds_pb.js';
import {
  type GeoIpSchema,
  HeartbeatRequestSchema,
  MetricsSchema,
  NodeInfoSchema,
} from '../../../../proto/gen/svc/node/v1/node_pb.js';
import { Feeds } from '../../../../runtime/feeds.ts';
import { discoverFeeds } from '../../../../services/discover.ts';
import {
  addressEntries,
  canonicalAddress,
  readBeat,
  readCapabilities,
  readPosition,
} from '../../../../services/node-channel/heartbeat.ts';

const NODE = {
  nodeId: 'n',
  clusterId: 'c',
  serial: 's',
  certificateNotAfter: new Date(),
  name: 'n',
  principals: ['node' as const],
  status: 'active' as const,
  features: new Set<string>(),
};
const FEEDS = new Feeds(await discoverFeeds());
const NOW = new Date('2026-01-02T03:04:05Z');

test('addresses are written as PostgreSQL writes them; anything else is dropped', (t) => {
  t.is(canonicalAddress('::ffff:192.0.2.1'), '192.0.2.1');
  t.is(canonicalAddress('2001:DB8:0:0::1'), '2001:db8::1');
  for (const bad of ['', 'localhost', '192.0.2.1/24', 'fe80::1%eth0', '01.2.3.4', "'; drop"]) {
    t.is(canonicalAddress(bad), undefined, bad);
  }
  const info = create(NodeInfoSchema, { ipAddresses: ['192.0.2.1', 'x', '::ffff:192.0.2.1', '2001:db8::1'] });
  t.deepEqual(addressEntries(info, '198.51.100.1'), [
    { address: '192.0.2.1', source: 'reported' },
    { address: '2001:db8::1', source: 'reported' },
    { address: '198.51.100.1', source: 'remote' },
  ]);
});

test('a node without proxy peers is known as such; one that does not say is not', (t) => {
  for (const proxyPeersUnset of [true, false]) {
    const request = create(HeartbeatRequestSchema, { info: create(NodeInfoSchema, { proxyPeersUnset }) });
    t.like(readBeat(NODE, request, null, NOW).info, { proxyPeersUnset });
  }
  t.like(readBeat(NODE, create(HeartbeatRequestSchema), null, NOW).info, { proxyPeersUnset: false });
});

test('what a node says of its databases is kept, and bounded; one that says nothing has told nothing', (t) => {
  const geoipOf = (geoip?: MessageInitShape<typeof GeoIpSchema>) => {
    const info = create(NodeInfoSchema, geoip ? { geoip } : {});
    return (readBeat(NODE, create(HeartbeatRequestSchema, { info }), null, NOW).info as { geoip: unknown }).geoip;
  };
  t.is(geoipOf(), null);
  const country = { ready: true, builtAt: 1_781_722_800n };
  t.deepEqual(geoipOf({ country, asn: { problem: `a\0${'p'.repeat(1000)}` } }), {
    country: { state: 'ready', builtAt: '2026-06-17T19:00:00.000Z', problem: '' },
    asn: { state: 'unavailable', builtAt: null, problem: `a${'p'.repeat(299)}` },
  });
  t.deepEqual(geoipOf({ country: { ready: true, builtAt: 2n ** 62n } }), {
    country: { state: 'ready', builtAt: null, problem: '' },
    asn: { state: 'unavailable', builtAt: null, problem: 'not told' },
  });
});

test('lists and texts of a node are cut', (t) => {
  const request = create(HeartbeatRequestSchema, {
    info: create(NodeInfoSchema, {
      hostname: `a\0${'h'.repeat(1000)}`,
      ipAddresses: Array.from({ length: 300 }, (_, index) => `192.0.2.${index % 256}`),
      features: Array.from({ length: 300 }, (_, index) => `f-${index}`),
    }),
    bans: create(BanStatusSchema, {
      unappliedIds: Array.from({ length: 500 }, (_, index) => `id${index}`),
      unapplied: 500n,
    }),
    message: 'm'.repeat(5000),
  });
  const beat = readBeat(NODE, request, null, NOW);
  const info = beat.info as { hostname: string; ipAddresses: string[] };
  t.is(info.hostname.length, 253);
  t.false(info.hostname.includes('\0'));
  t.is(info.ipAddresses.length, 64);
  t.is(beat.features.length, 64);
  t.is(beat.unappliedIds.length, 100);
  t.is(beat.message.length, 500);
});

test('capabilities are names, sorted, once each', (t) => {
  const info = create(NodeInfoSchema, { features: ['b-v1', 'a-v1', 'b-v1', 'Not A Name', '', '-x'] });
  t.deepEqual(readCapabilities(info), ['a-v1', 'b-v1']);
  t.deepEqual(readCapabilities(undefined), []);
});

test('numbers beyond what can be stored or shown are cut to it', (t) => {
  const request = create(HeartbeatRequestSchema, {
    info: create(NodeInfoSchema, { features: ['metrics-v1'] }),
    metrics: create(MetricsSchema, {
      cpuPercent: Number.NaN,
      load1: Number.POSITIVE_INFINITY,
      load5: -1,
      load15: 1e300,
      memoryUsedBytes: 2n ** 64n - 1n,
    }),
    certificateNotAfter: 2n ** 62n,
  });
  const beat = readBeat(NODE, request, null, NOW);
  t.like(beat.metrics, { cpuPercent: 0, load1: 0, load5: 0, load15: 1e9, memoryUsedBytes: Number.MAX_SAFE_INTEGER });
  t.is(beat.certificateNotAfter, null);
  const position = create(ConfigPositionSchema, { epoch: 2n ** 64n - 1n, revision: 2n ** 64n - 1n });
  const row = readPosition(NODE, NOW, { config: position, failed: [] }, FEEDS, false);
  t.is(row.config?.epoch, 2n ** 63n - 1n);
  t.is(row.places.size, 0);
});

test('every text can be stored, wherever it was cut; times are of this age', (t) => {
  const request = create(HeartbeatRequestSchema, {
    info: create(NodeInfoSchema, { hostname: `${'h'.repeat(252)}😀` }),
    message: `${'m'.repeat(499)}😀`,
    certificateNotAfter: 253_402_300_800n,
  });
  const beat = readBeat(NODE, request, null, NOW);
  t.true(beat.message.isWellFormed());
  t.true((beat.info as { hostname: string }).hostname.isWellFormed());
  t.is(beat.certificateNotAfter, null, 'the year 10000');
  const failed = [create(FailedEntrySchema, { kind: 'site', id: 'a', reason: `${'r'.repeat(499)}😀` })];
  const row = readPosition(NODE, NOW, { config: create(ConfigPositionSchema, { epoch: 1n }), failed }, FEEDS, false);
  t.true((JSON.parse(row.config!.failed) as { reason: string }[])[0]!.reason.isWellFormed());
});

test('metrics are null without metrics-v1', (t) => {
  const metrics = create(MetricsSchema, { cpuPercent: 5 });
  t.is(readBeat(NODE, create(HeartbeatRequestSchema, { metrics }), null, NOW).metrics, null);
});

test('failed entries tell whether an earlier version keeps serving', (t) => {
  const failed = [
    create(FailedEntrySchema, { kind: 'site', id: 'a', reason: 'no', runningHash: new Uint8Array(32) }),
    create(FailedEntrySchema, { kind: 'site', id: 'b', reason: 'no' }),
  ];
  const config = create(ConfigPositionSchema, { epoch: 1n, revision: 2n });
  const row = readPosition(NODE, NOW, { config, failed }, FEEDS, false);
  t.deepEqual(
    (JSON.parse(row.config!.failed) as { id: string; running: boolean }[]).map(({ id, running }) => [id, running]),
    [
      ['a', true],
      ['b', false],
    ],
  );
});

test('a full report without a feed takes its place back where the node keeps it in memory or by name, and only there', (t) => {
  const node = { ...NODE, features: new Set(['feeds-v1']) };
  const named = namedFeed({
    name: 'made-up',
    topic: 'made-up',
    ownerLock: 0x535601ff,
    hint: null,
    changes: null,
    rows: () => ({}) as FeedRows,
  });
  const feeds = new Feeds([...FEEDS, named]);
  const places = (of: typeof node, isFull: boolean) =>
    [...readPosition(of, NOW, { failed: [] }, feeds, isFull).places].map(([name, { sequence }]) => [name, sequence]);
  t.deepEqual(places(node, true), [
    ['acme', 0n],
    ['made-up', 0n],
  ]);
  t.deepEqual(places(node, false), []);
  t.deepEqual(
    places({ ...node, features: new Set() }, true),
    [['acme', 0n]],
    'an agent of before has no feeds by name',
  );
  const reported = { failed: [], feeds: [create(FeedPositionSchema, { feed: 'made-up', epoch: 3n, sequence: 5n })] };
  t.like(readPosition(node, NOW, reported, feeds, false).places.get('made-up'), { epoch: 3n, sequence: 5n, at: NOW });
});
