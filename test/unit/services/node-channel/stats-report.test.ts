// What is taken of a node's batch of counts.
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { LATENCY_BOUNDS_MS } from '../../../../contract/latency-buckets.ts';
import { ReportStatsRequestSchema, RuleEvent, TopList } from '../../../../proto/gen/svc/node/v1/node_pb.js';
import { decodeReportStats } from '../../../../services/node-channel/decode-stats.ts';
import { RuleSums } from '../../../../services/node-channel/rule-sums.ts';
import { readStatsReport } from '../../../../services/node-channel/stats-report.ts';
import { StatsSums } from '../../../../services/node-channel/stats-sums.ts';
import { TopSums } from '../../../../services/node-channel/top-sums.ts';

const MINUTE = 60_000;
const now = Date.parse('2026-03-10T12:34:56Z');
const minute = Date.parse('2026-03-10T12:34:00Z');
const places = { now, keepFrom: now - 100 * 1440 * MINUTE, floor: now - 50 * 1440 * MINUTE };
const read = (request: MessageInitShape<typeof ReportStatsRequestSchema>) =>
  readStatsReport(
    decodeReportStats(
      toBinary(ReportStatsRequestSchema, create(ReportStatsRequestSchema, { sequence: 1n, ...request })),
    ),
    places,
  );
const row = (at: number, more: object = {}) => ({ siteId: 's', minute: BigInt(at / 1000), requests: 1n, ...more });
const placesOf = (...times: number[]) => {
  const { rows, misfits } = read({ minutes: times.map((at) => row(at)) });
  return { minutes: rows.map((each) => each.minute), misfits };
};

test('a time belongs to its minute; one ahead is now, one without a place is at the first that has', (t) => {
  t.deepEqual(placesOf(minute, minute + 7000, minute + 5 * MINUTE), {
    minutes: [minute, minute, minute + 5 * MINUTE],
    misfits: { bad: 0, too_old: 0, moved: 0 },
  });
  const old = places.floor - MINUTE - 56_000;
  t.deepEqual(placesOf(minute + 600 * MINUTE, old, places.keepFrom - MINUTE), {
    minutes: [minute, places.floor],
    misfits: { bad: 0, too_old: 1, moved: 2 },
  });
});

test('what cannot be is left out, and the rest of its batch counts', (t) => {
  const { rows, numbers, misfits } = read({
    minutes: [
      row(minute, { siteId: 'x'.repeat(65) }),
      row(minute, { siteId: 'a b' }),
      row(minute, { requests: 2n ** 63n }),
      row(minute, { bytesReceived: 2n ** 63n }),
      { siteId: 's', minute: 2n ** 62n },
      row(minute, {
        statuses: [
          { code: 200, count: 1n },
          { code: 99, count: 1n },
          { code: 404, count: 2n ** 63n },
        ],
        counts: [
          { name: 'blocked.ban', count: 2n },
          { name: '"', count: 1n },
        ],
        latency: [1n, 2n],
        ...{ cacheHits: 3n, cacheMisses: 2n ** 63n, cacheHitBytes: 4n },
      }),
      row(minute, { latency: new Array(LATENCY_BOUNDS_MS.length + 2).fill(1n) }),
    ],
  });
  t.is(misfits.bad, 5);
  t.is(rows.length, 2);
  const sums = new StatsSums();
  sums.add('c', rows[0]!, numbers);
  t.like([...sums.pieces(10)].flat()[0], {
    siteId: 's',
    statuses: '{"200":1}',
    counts: '{"blocked.ban":2}',
    latency: '{1,2}',
    ...{ cacheHits: 3, cacheMisses: 0, cacheHitBytes: '4' },
  });
  t.is(rows[1]!.latency, 0);
});

test('a watermark is never ahead of the console, and gaps have an end', (t) => {
  t.is(read({ completeUntil: BigInt(now / 1000 + 3600) }).completeUntil, now);
  t.is(read({}).completeUntil, null);
  t.is(read({ completeUntil: -1n }).completeUntil, null);
  const gaps = [
    { from: 60n, to: 61n },
    { from: 61n, to: 60n },
    { from: -1n, to: 60n },
  ];
  t.deepEqual(read({ gaps }).gaps, [{ from: 60_000, to: 61_000 }]);
});

test('a batch beyond its limits, or with counts and no number, is refused', (t) => {
  const invalid = { message: /invalid_argument/ };
  t.throws(() => read({ minutes: new Array(10_001).fill(row(minute)) }), invalid);
  t.throws(() => read({ gaps: new Array(1_001).fill({ from: 1n, to: 1n }) }), invalid);
  t.throws(() => read({ sequence: 0n, minutes: [row(minute)] }), invalid);
  t.throws(() => read({ sequence: 2n ** 63n }), invalid);
  t.is(read({ sequence: 0n }).sequence, 0n);
});

test('batches of a second are summed by cluster, site and minute', (t) => {
  const sums = new StatsSums();
  const { rows, numbers } = read({
    minutes: [
      row(minute, { bytesSent: 300_000_000_000_000n, statuses: [{ code: 200, count: 1n }], latency: [1n] }),
      row(minute, { bytesSent: 300_000_000_000_000n, statuses: [{ code: 200, count: 2n }], latency: [0n, 3n] }),
      row(minute - MINUTE, { counts: [{ name: 'blocked.ban', count: 4n }] }),
    ],
  });
  for (let turn = 0; turn < 6; turn++) for (const each of rows) sums.add('c', each, numbers);
  sums.add('d', rows[0]!, numbers);
  const cached = { cacheHits: 0, cacheMisses: 0, cacheHitBytes: '0' };
  const none = { bytesReceived: '0', ...cached, failed: 0, counts: null, siteId: 's' };
  t.deepEqual(
    [...sums.pieces(2)].map(({ length }) => length),
    [2, 1],
  );
  const written = [...sums.pieces(10)].flat().map(({ of: _, ...row }) => row);
  t.deepEqual(written, [
    {
      ...none,
      clusterId: 'c',
      minute,
      requests: 12,
      bytesSent: '3600000000000000',
      statuses: '{"200":18}',
      latency: '{6,18}',
    },
    {
      ...none,
      clusterId: 'c',
      minute: minute - MINUTE,
      requests: 6,
      bytesSent: '0',
      statuses: null,
      counts: '{"blocked.ban":24}',
      latency: null,
    },
    {
      ...none,
      clusterId: 'd',
      minute,
      requests: 1,
      bytesSent: '300000000000000',
      statuses: '{"200":1}',
      latency: '{1}',
    },
  ]);
});

test('sums of more bytes than a column holds, which a broken counter tells, go to several rows', (t) => {
  const sums = new StatsSums();
  const large = 1_000_000_000_000_000n;
  const { rows, numbers } = read({
    minutes: new Array(10_000).fill(row(minute, { bytesSent: large, statuses: [{ code: 200, count: 1n }] })),
  });
  for (const each of rows) sums.add('c', each, numbers);
  const told = [...sums.pieces(100)].flat();
  t.true(told.every(({ bytesSent }) => BigInt(bytesSent) < 2n ** 63n));
  t.is(
    told.reduce((sum, { bytesSent }) => sum + BigInt(bytesSent), 0n),
    10_000n * large,
  );
  t.is(
    told.reduce((sum, { requests }) => sum + requests, 0),
    10_000,
  );
});

test('of the counts of rules those that cannot be are left out', (t) => {
  const { LOGGED, BLOCKED } = RuleEvent;
  const rule = (more: object = {}) => ({ ruleId: 'r', platform: false, event: LOGGED, count: 1n, ...more });
  const { rows, rules } = read({
    minutes: [
      row(minute, {
        rules: [
          rule(),
          rule({ platform: true }),
          rule({ event: BLOCKED }),
          // The node counts those.
          rule({ event: BLOCKED, platform: true }),
          rule({ ruleId: '' }),
          rule({ ruleId: 'a b' }),
          rule({ ruleId: 'x'.repeat(65) }),
          rule({ event: 0 }),
          rule({ event: 8 }),
          rule({ count: 0n }),
          rule({ count: 2n ** 63n }),
        ],
      }),
      row(minute, { siteId: '', rules: [rule(), rule({ event: BLOCKED, platform: true })] }),
      row(minute, { rules: Array.from({ length: 150 }, (_, index) => rule({ ruleId: `r${index}` })) }),
    ],
  });
  t.deepEqual(
    rows[0]!.rules.map(({ platform, event }) => [platform, event]),
    [
      [false, LOGGED],
      [true, LOGGED],
      [false, BLOCKED],
    ],
  );
  t.deepEqual(rows[1]!.rules, [{ ruleId: 'r', platform: true, event: BLOCKED, count: 1 }]);
  t.is(rows[2]!.rules.length, 140);
  t.is(rules, 144);
});

test('counts of a rule add up over batches, by cluster, site, minute, rule and event', (t) => {
  const rule = { ruleId: 'r', platform: false, event: RuleEvent.LOGGED as number, count: 2 };
  const sums = new RuleSums();
  const add = (clusterId: string, siteId: string, at: number, more: object = {}) =>
    sums.add(clusterId, { siteId, ruleMinute: at, rules: [{ ...rule, ...more }] });
  add('c', 's', minute);
  add('c', 's', minute, { count: 3 });
  add('d', 's', minute);
  add('c', 't', minute);
  add('c', 's', minute + MINUTE);
  add('c', 's', minute, { platform: true });
  add('c', 's', minute, { event: RuleEvent.BLOCKED });
  const pieces = [...sums.pieces(4)];
  t.deepEqual(
    pieces.map(({ length }) => length),
    [4, 2],
  );
  t.deepEqual(
    pieces.flat().map(({ requests }) => requests),
    [5, 2, 2, 2, 2, 2],
  );
});

test('a gap ends now at the latest, and one that begins later is none', (t) => {
  const second = now / 1000;
  const gap = (from: number, to: number) => ({ from: BigInt(from), to: BigInt(to) });
  const { gaps } = read({ gaps: [gap(second - 60, 2 ** 39), gap(second + 60, 2 ** 39), gap(second - 9, second - 3)] });
  t.deepEqual(gaps, [
    { from: now - 60_000, to: now },
    { from: now - 9_000, to: now - 3_000 },
  ]);
});

test('a batch beyond 20,000 counts of rules is refused', (t) => {
  const rules = Array.from({ length: 140 }, (_, index) => ({
    ruleId: `r${index}`,
    event: RuleEvent.LOGGED,
    count: 1n,
  }));
  const minutes = (rows: number) => Array.from({ length: rows }, () => row(minute, { rules }));
  t.is(read({ minutes: minutes(142) }).rules, 19_880);
  t.throws(() => read({ minutes: minutes(143) }), { message: /at most 20000 counts of rules/ });
});

const top = (list: TopList, key: string, requests = 1n, bytesSent = 10n) => ({ list, key, requests, bytesSent });

test('entries of lists that no node of ours sends are left out', (t) => {
  const good = [
    top(TopList.URL, 'a.example/\u{1f600}"\\'),
    top(TopList.ADDRESS, '2001:db8::1'),
    top(TopList.COUNTRY, 'DE'),
    top(TopList.NETWORK, '64500 Example'),
    top(TopList.NETWORK, '64501'),
    top(TopList.REFERRER, '__proto__'),
  ];
  const bad = [
    top(TopList.UNSPECIFIED, 'a'),
    top(99 as TopList, 'a'),
    top(TopList.URL, ''),
    top(TopList.URL, 'a\u0000b'),
    top(TopList.URL, 'a\nb'),
    top(TopList.URL, 'u'.repeat(513)),
    top(TopList.URL, 'a', 0n),
    top(TopList.URL, 'a', 2n ** 63n),
    top(TopList.URL, 'a', 1n, 2n ** 63n),
    top(TopList.ADDRESS, '1.2.3'),
    top(TopList.COUNTRY, 'de'),
    top(TopList.NETWORK, 'Example'),
  ];
  const { rows, lists } = read({ minutes: [row(minute, { tops: [...bad, ...good] })] });
  t.deepEqual(
    rows[0]!.tops.map(({ list, key }) => [list, key]),
    good.map(({ list, key }) => [list, key]),
  );
  t.is(lists, 5);
  const many = Array.from({ length: 1000 }, (_, at) => top(TopList.URL, `/${at}`));
  t.is(read({ minutes: [row(minute, { tops: many })] }).rows[0]!.tops.length, 144);
});

test('lists are summed by site, minute and list, and once more of the cluster and of all sites; foreign and old ones are not', (t) => {
  const sums = new TopSums(now);
  const { rows } = read({
    minutes: [
      row(minute, { tops: [top(TopList.URL, 'a/'), top(TopList.COUNTRY, 'DE', 2n)] }),
      row(minute, { tops: [top(TopList.URL, 'a/', 3n, 1n)] }),
      row(minute, { siteId: 't', tops: [top(TopList.URL, 'a/', 4n)] }),
      row(minute, { siteId: 'foreign', tops: [top(TopList.URL, 'f/')] }),
      row(minute, { siteId: '', tops: [top(TopList.URL, 'n/')] }),
      row(minute - 8 * 1440 * MINUTE, { tops: [top(TopList.URL, 'old/')] }),
    ],
  });
  sums.add('c', rows, ({ siteId }) => siteId !== 'foreign');
  const lines = sums.marks().map(({ subject, list, minute: at, items }) => [subject, list, at, JSON.parse(items)]);
  t.deepEqual(lines, [
    ['s', TopList.URL, minute, { 'a/': [4, 11] }],
    ['s', TopList.COUNTRY, minute, { DE: [2, 10] }],
    ['c', TopList.URL, minute, { 'a/': [8, 21] }],
    ['c', TopList.COUNTRY, minute, { DE: [2, 10] }],
    ['', TopList.URL, minute, { 'a/': [8, 21] }],
    ['', TopList.COUNTRY, minute, { DE: [2, 10] }],
    ['t', TopList.URL, minute, { 'a/': [4, 10] }],
  ]);
});

test('a row that has lists alone counts nothing', (t) => {
  const { rows, numbers } = read({
    minutes: [{ siteId: 's', minute: BigInt(minute / 1000), tops: [top(TopList.URL, 'a/')] }],
  });
  const sums = new StatsSums();
  sums.add('c', rows[0]!, numbers);
  t.deepEqual([...sums.pieces(10)], []);
});

test('of each sum the responses with status 5xx are told apart', (t) => {
  const sums = new StatsSums();
  const { rows, numbers } = read({
    minutes: [
      row(minute, {
        statuses: [
          { code: 200, count: 5n },
          { code: 500, count: 1n },
          { code: 599, count: 2n },
        ],
      }),
    ],
  });
  sums.add('c', rows[0]!, numbers);
  sums.add('c', rows[0]!, numbers);
  t.deepEqual(
    [...sums.pieces(10)].flat().map(({ failed }) => failed),
    [6],
  );
});
