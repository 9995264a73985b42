import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { LogRowSchema, ReportLogsRequestSchema } from '../../../../proto/gen/svc/node/v1/logs_pb.js';
import { readLogReport } from '../../../../services/node-channel/log-report.ts';

const NOW = Date.UTC(2026, 0, 2);
const NODE = { nodeId: 'n', clusterId: 'c', now: NOW };
const GOOD: MessageInitShape<typeof LogRowSchema> = {
  boot: 7n,
  row: 1n,
  atMs: BigInt(NOW),
  siteId: 'site',
  client: new Uint8Array([203, 0, 113, 7]),
  method: 'GET',
  host: 'a.example',
  path: '/',
  status: 200,
  sampleRate: 10_000,
};
const encoded = (more: MessageInitShape<typeof LogRowSchema> = {}) =>
  toBinary(LogRowSchema, create(LogRowSchema, { ...GOOD, ...more }));
const read = (rows: Uint8Array[], more: MessageInitShape<typeof ReportLogsRequestSchema> = {}, node = NODE) =>
  readLogReport(toBinary(ReportLogsRequestSchema, create(ReportLogsRequestSchema, { rows, ...more })), node);

test('a row is named by its node, process and number, whatever request id a client chose', (t) => {
  const ids = (node: typeof NODE) =>
    read(
      [encoded({ requestId: 'x' }), encoded({ row: 2n, requestId: 'x' }), encoded({ boot: 8n, requestId: 'x' })],
      {},
      node,
    ).rows.map(({ id }) => id);
  const here = ids(NODE);
  t.deepEqual(here, ids(NODE));
  t.is(new Set([...here, ...ids({ ...NODE, nodeId: 'other' })]).size, 6);
  for (const id of here) t.regex(id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
});

test('a row that cannot be is set aside, and the others are kept', (t) => {
  const bad: MessageInitShape<typeof LogRowSchema>[] = [
    { siteId: '' },
    { siteId: "a'b" },
    { status: 99 },
    { status: 600 },
    { sampleRate: 0 },
    { sampleRate: 10_001 },
    { atMs: 0n },
    { atMs: BigInt(NOW + 6 * 60_000) },
    { durationMs: 86_400_001 },
    { bytesSent: 2n ** 60n },
    { path: 'a\0b' },
    { path: 'x'.repeat(2049) },
    { path: 'é'.repeat(1025) },
    { userAgent: 'x'.repeat(513) },
    { headers: [{ name: 'x', value: 'y'.repeat(513) }] },
  ];
  const { rows, aside } = read([
    encoded(),
    ...bad.map((each) => encoded(each)),
    new Uint8Array([255, 255]),
    encoded({ row: 2n }),
  ]);
  t.is(rows.length, 2);
  t.is(
    aside.reduce((sum, each) => sum + each.rows, 0),
    bad.length + 1,
  );
});

test('values that no field has are left out, and the row is kept', (t) => {
  const [row] = read([
    encoded({
      client: new Uint8Array(3),
      peer: new Uint8Array([0x20, 0x01, 0x0d, 0xb8, ...new Uint8Array(11), 1]),
      cacheStatus: 'SOME',
      blockReason: 'whim',
      country: 'de',
      ruleIds: ['good', 'bad id', 'platform:also'],
      wafRuleIds: Array.from({ length: 20 }, (_, index) => 942_000 + index),
      upstreamStatus: 7,
      tlsVersion: '0.9',
    }),
  ]).rows;
  t.like(row, { clientIp: null, peerIp: '2001:db8:0:0:0:0:0:1', cacheStatus: null, blockReason: null, country: null });
  t.like(row, { ruleIds: ['good', 'platform:also'], upstreamStatus: null, tlsVersion: null });
  t.is(row!.wafRuleIds.length, 16);
});

test('a report beyond its limits is refused as a whole', (t) => {
  const refused = { code: 3 };
  t.throws(() => read(Array.from({ length: 2001 }, () => new Uint8Array())), refused);
  t.throws(() => readLogReport(new Uint8Array(4 * 1024 * 1024 + 1), NODE), refused);
  t.throws(() => readLogReport(new Uint8Array([255]), NODE), refused);
});
