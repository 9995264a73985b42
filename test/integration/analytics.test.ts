// Statistics: what nodes report as points, totals and lists; they equal usage.
import { randomUUID } from 'node:crypto';
import test from 'ava';
import { deleteOldTopLists, takeAllTopMarks } from '../../models/traffic/top-list.ts';
import { takeAllTrafficMarks } from '../../models/traffic/traffic-mark.ts';
import { TopList } from '../../proto/gen/svc/node/v1/node_pb.js';
import { sumTraffic } from '../../services/analytics/roll-up.ts';
import { rollUpUsage } from '../../services/usage/roll-up.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { ReportingNode, servedSite } from '../helpers/reporting-node.ts';
import { Api, type Body } from '../helpers/resources.ts';

const MINUTE_S = 60;
const HOUR_S = 3600;
const DAY_S = 86_400;

let running: TestConsole;
let api: Api;
let siteId: string;
let otherId: string;
let node: ReportingNode;
let second: ReportingNode;
const sequences = new Map<ReportingNode, bigint>();

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  let clusterId: string;
  ({ clusterId, siteId, node } = await servedSite(running, api));
  otherId = (await api.site(clusterId, 'news.example')).id;
  second = await ReportingNode.enroll(running, clusterId);
});
test.after.always('stop', async () => {
  node?.stop();
  second?.stop();
  await running?.stop();
});

type Tops = Partial<Record<'URL' | 'ADDRESS' | 'COUNTRY' | 'NETWORK' | 'REFERRER', Record<string, number>>>;
interface Row {
  site?: string;
  at: number;
  requests: number;
  sent?: bigint;
  statuses?: Record<number, number>;
  counts?: Record<string, number>;
  latency?: number[];
  hits?: number;
  misses?: number;
  tops?: Tops;
}
const minuteOf = ({
  site = siteId,
  at,
  requests,
  sent = 1000n,
  statuses = {},
  counts = {},
  latency = [],
  hits = 0,
  misses = 0,
  tops = {},
}: Row) => ({
  siteId: site,
  minute: BigInt(at),
  requests: BigInt(requests),
  bytesSent: sent,
  bytesReceived: 10n,
  statuses: Object.entries(statuses).map(([code, count]) => ({ code: Number(code), count: BigInt(count) })),
  counts: Object.entries(counts).map(([name, count]) => ({ name, count: BigInt(count) })),
  latency: latency.map(BigInt),
  cacheHits: BigInt(hits),
  cacheMisses: BigInt(misses),
  tops: Object.entries(tops).flatMap(([list, keys]) =>
    Object.entries(keys).map(([key, n]) => ({
      list: TopList[list as keyof Tops],
      key,
      requests: BigInt(n),
      bytesSent: BigInt(10 * n),
    })),
  ),
});
const report = async (rows: readonly Row[], by = node): Promise<void> => {
  const sequence = (sequences.get(by) ?? 0n) + 1n;
  sequences.set(by, sequence);
  await by.connection.call('reportStats', { minutes: rows.map(minuteOf), sequence });
};
const rollUp = async (): Promise<void> => {
  const { runtime } = running.running;
  await rollUpUsage(runtime);
  await takeAllTrafficMarks(runtime.pools.api);
  await sumTraffic(runtime);
};
const nowS = () => Math.floor(Date.now() / 1000);
const minuteNow = () => Math.floor(nowS() / MINUTE_S) * MINUTE_S;
const traffic = (query: string): Promise<Body> => api.ok('GET', `/analytics/traffic?${query}`);
const sumOf = (rows: readonly Body[], field: string): number => rows.reduce((sum, row) => sum + row[field], 0);
const RANGES = ['1h', '6h', '24h', '7d', '30d', '90d', '365d'];

test.serial(
  'counts of a running minute are in every range of the site and of all, before they are rolled up',
  async (t) => {
    const at = minuteNow();
    await report([
      {
        at,
        requests: 10,
        sent: 6000n,
        statuses: { 200: 6, 304: 1, 404: 2, 502: 1 },
        counts: {
          'blocked.ban': 2,
          'challenge.shown.js': 3,
          'challenge.passed.js': 1,
          'failed.origin-timeout': 1,
          'failed.made-up': 1,
          'origin-latency.4': 1,
          'origin-latency.99': 1,
          'browser.firefox': 6,
          'browser.chrome': 4,
          'browser.made-up': 4,
          'http.2': 10,
          'tls.1.3': 9,
        },
        latency: [0, 8, 1, 1],
        hits: 4,
        misses: 2,
      },
    ]);
    await takeAllTrafficMarks(running.running.runtime.pools.api);
    for (const range of RANGES) {
      for (const one of [`&siteId=${siteId}`, '']) {
        const answer = await traffic(`range=${range}${one}`);
        const { peakBytesPerSecond, failures, ...totals } = answer.totals;
        t.deepEqual(failures, [{ cause: 'origin-timeout', requests: 1 }]);
        t.deepEqual(
          totals,
          {
            requests: 10,
            bytesSent: 6000,
            bytesReceived: 10,
            cacheHits: 4,
            cacheMisses: 2,
            status1xx: 0,
            status2xx: 6,
            status3xx: 1,
            status4xx: 2,
            status5xx: 1,
            blocked: 2,
            challengesIssued: 3,
            challengesPassed: 1,
            latency: { p50Ms: 2, p95Ms: 8, p99Ms: 8 },
            originLatency: { p50Ms: 12, p95Ms: 12, p99Ms: 12 },
          },
          `${range}${one}`,
        );
        t.is(peakBytesPerSecond, 6000 / answer.bucketSeconds);
        t.deepEqual(answer.statuses, [
          { status: 200, requests: 6 },
          { status: 404, requests: 2 },
          { status: 304, requests: 1 },
          { status: 502, requests: 1 },
        ]);
        const point = answer.points.find(({ requests }: Body) => requests > 0);
        t.true(
          Date.parse(point.start) <= at * 1000 && at * 1000 < Date.parse(point.start) + answer.bucketSeconds * 1000,
        );
        t.is(answer.previous?.requests, range === '365d' ? undefined : 0);
      }
    }
  },
);

test.serial('dimensions list requests by kind, and say how many nodes do not count them', async (t) => {
  for (const one of ['', `&siteId=${siteId}`]) {
    t.like(await api.ok('GET', `/analytics/dimensions?range=6h${one}`), {
      requests: 10,
      browsers: [
        { name: 'firefox', requests: 6 },
        { name: 'chrome', requests: 4 },
      ],
      systems: [],
      devices: [],
      httpVersions: [{ name: '2', requests: 10 }],
      tlsVersions: [{ name: '1.3', requests: 9 }],
      blockReasons: [{ name: 'ban', requests: 2 }],
      challenges: { issued: 3, passed: 1 },
      unsupportedNodes: 2,
    });
  }
});

test.serial('points span the range, the last one is running', async (t) => {
  const points: Record<string, [number, number]> = {
    '1h': [60, 60],
    '6h': [72, 300],
    '24h': [144, 600],
    '7d': [168, 3600],
    '30d': [120, 21_600],
    '90d': [90, 86_400],
    '365d': [365, 86_400],
  };
  for (const [range, [count, bucketSeconds]] of Object.entries(points)) {
    const answer = await traffic(`range=${range}`);
    t.is(answer.points.length, count, range);
    t.is(answer.bucketSeconds, bucketSeconds);
    const last = Date.parse(answer.points.at(-1).start);
    t.is(Date.parse(answer.to), last + bucketSeconds * 1000);
    t.true(last <= Date.now() && Date.now() < last + bucketSeconds * 1000 + 60_000);
    t.is(Date.parse(answer.from) + count * bucketSeconds * 1000, Date.parse(answer.to));
  }
  t.is((await traffic('')).range, '24h');
  await api.refused(t, [400, 'BAD_REQUEST'], 'GET', '/analytics/traffic?range=2h');
});

test.serial('late counts change hour and day once, those older than 7 days are dropped', async (t) => {
  const at = minuteNow() - 2 * DAY_S;
  const before = (await traffic(`range=30d&siteId=${siteId}`)).totals;
  await report([
    { at, requests: 5, statuses: { 200: 5 } },
    { at: at + MINUTE_S, requests: 1, statuses: { 500: 1 } },
  ]);
  await report([{ at, requests: 7, statuses: { 200: 7 } }], second);
  await rollUp();
  await report([{ at, requests: 2, statuses: { 200: 1, 500: 1 } }]);
  await report([{ at: minuteNow() - 8 * DAY_S, requests: 100, statuses: { 200: 100 } }]);
  await rollUp();
  await rollUp();
  for (const range of ['7d', '30d', '90d', '365d']) {
    for (const one of [`&siteId=${siteId}`, '']) {
      const { totals } = await traffic(`range=${range}${one}`);
      t.is(totals.requests - before.requests, 15, `${range}${one}`);
      t.is(totals.status2xx - before.status2xx, 13, `${range}${one}`);
      t.is(totals.status5xx - before.status5xx, 2, `${range}${one}`);
    }
  }
});

test.serial('the previous period is the one of the same length before', async (t) => {
  const at = minuteNow() - 90 * MINUTE_S;
  await report([{ at, requests: 21, site: otherId }]);
  await rollUp();
  for (const one of ['', `&siteId=${otherId}`]) {
    const { previous, totals } = await traffic(`range=1h${one}`);
    t.is(previous.requests, 21);
    t.is(totals.requests, one === '' ? 10 : 0);
  }
  t.is((await traffic(`range=6h&siteId=${otherId}`)).totals.requests, 21);
});

test.serial('sites and nodes are listed by their traffic', async (t) => {
  await report([{ at: minuteNow() - 30 * MINUTE_S, requests: 100, sent: 9_000_000n, site: otherId }], second);
  await rollUp();
  const sites = await api.ok('GET', '/analytics/top-sites?range=7d');
  t.deepEqual(
    sites.items.map(({ id, name, parentName }: Body) => [id, name, parentName]),
    [
      [otherId, 'news.example', 'hong-kong'],
      [siteId, 'shop.example', 'hong-kong'],
    ],
  );
  t.is(sites.items[0].requests, 121);
  t.is(sites.total, 2);
  const byBytes = await api.ok('GET', '/analytics/top-sites?range=7d&metric=bytesSent&limit=1');
  t.deepEqual(
    byBytes.items.map(({ id }: Body) => id),
    [otherId],
  );
  t.is(byBytes.total, 2);
  const nodes = await api.ok('GET', '/analytics/top-nodes?range=7d');
  t.deepEqual(
    nodes.items.map(({ id, requests }: Body) => [id, requests]),
    [
      [second.id, 107],
      [node.id, 39],
    ],
  );
  t.is(nodes.items[1].cacheHits, 4);
  t.is(nodes.items[1].cacheMisses, 2);
});

test.serial('a breakdown lists series whose sums are the totals', async (t) => {
  for (const range of ['1h', '24h', '7d']) {
    const totals = (await traffic(`range=${range}`)).totals;
    for (const by of ['site', 'node', 'status']) {
      const answer = await api.ok('GET', `/analytics/breakdown?range=${range}&by=${by}`);
      t.is(answer.total, totals.requests, `${range} ${by}`);
      t.is(answer.times.length, answer.totalSeries.length);
      for (const { total, series } of answer.items) {
        t.is(series.length, answer.times.length);
        t.is(
          series.reduce((sum: number, n: number) => sum + n, 0),
          total,
        );
      }
      if (by === 'node') t.is(sumOf(answer.items, 'total'), totals.requests, `${range} ${by}`);
    }
  }
  const errors = await api.ok('GET', `/analytics/breakdown?range=7d&by=status&statusClass=5&siteId=${siteId}`);
  t.deepEqual(
    errors.items.map(({ id, total }: Body) => [id, total]),
    [
      ['500', 2],
      ['502', 1],
    ],
  );
  const failing = await api.ok('GET', '/analytics/breakdown?range=7d&by=node&statusClass=5');
  t.deepEqual(
    failing.items.map(({ id, total }: Body) => [id, total]),
    [[node.id, 3]],
  );
  const ofSite = await api.ok('GET', `/analytics/breakdown?range=7d&by=site&metric=bytesSent&siteId=${otherId}`);
  t.deepEqual(
    ofSite.items.map(({ id }: Body) => id),
    [otherId],
  );
});

test.serial('what is not counted is refused', async (t) => {
  for (const query of [
    'by=status&metric=bytesSent',
    'by=site&metric=bytesSent&statusClass=5',
    `by=node&siteId=${siteId}`,
  ]) {
    await api.refused(t, [400, 'ANALYTICS_QUERY_INVALID'], 'GET', `/analytics/breakdown?${query}`);
  }
});

const topRequests = (query: string): Promise<Body> => api.ok('GET', `/analytics/top-requests?${query}`);
const countsOf = (items: readonly Body[], name: string) => items.map((item) => [item[name], item.requests]);

test.serial('top lists are there before and after they are summed, of a site and of all', async (t) => {
  const at = minuteNow();
  await report([
    {
      at,
      requests: 0,
      sent: 0n,
      tops: {
        URL: { 'shop.example/cart': 5, 'shop.example/': 2 },
        ADDRESS: { '198.51.100.7': 6, '2001:db8::7': 1 },
        COUNTRY: { DE: 6, JP: 1 },
        NETWORK: { '64500 Example': 3, '64500 Example Net': 2, '64501': 1 },
        REFERRER: { 'news.example': 4 },
      },
    },
  ]);
  await report([{ at, requests: 0, sent: 0n, tops: { URL: { 'shop.example/': 1 } } }], second);
  await report([{ site: otherId, at, requests: 0, sent: 0n, tops: { URL: { 'news.example/': 4 } } }], second);
  const { api: sql } = running.running.runtime.pools;
  for (const summed of [false, true]) {
    // As if the window of five minutes were over.
    if (summed) await takeAllTopMarks(sql, new Date(Date.now() + 10 * MINUTE_S * 1000));
    for (const range of RANGES) {
      const ofSite = await topRequests(`range=${range}&siteId=${siteId}`);
      t.deepEqual(
        ofSite.items,
        [
          { value: 'shop.example/cart', requests: 5, bytesSent: 50 },
          { value: 'shop.example/', requests: 3, bytesSent: 30 },
        ],
        range,
      );
      t.is(ofSite.unsupportedNodes, 2);
      const all = await topRequests(`range=${range}&limit=2`);
      t.deepEqual(countsOf(all.items, 'value'), [
        ['shop.example/cart', 5],
        ['news.example/', 4],
      ]);
      t.deepEqual(countsOf((await topRequests(`by=ip&range=${range}`)).items, 'value'), [
        ['198.51.100.7', 6],
        ['2001:db8::7', 1],
      ]);
      const dimensions = await api.ok('GET', `/analytics/dimensions?range=${range}&siteId=${siteId}`);
      t.deepEqual(dimensions.countries, [
        { country: 'DE', requests: 6, bytesSent: 60 },
        { country: 'JP', requests: 1, bytesSent: 10 },
      ]);
      t.deepEqual(dimensions.networks, [
        { asn: 64500, name: 'Example', requests: 5, bytesSent: 50 },
        { asn: 64501, name: '', requests: 1, bytesSent: 10 },
      ]);
      t.deepEqual(dimensions.referrers, [{ host: 'news.example', requests: 4, bytesSent: 40 }]);
      t.is(dimensions.unlistedNodes, 2);
    }
  }
  await api.refused(t, [400, 'BAD_REQUEST'], 'GET', '/analytics/top-requests?by=path');
  await api.refused(t, [400, 'BAD_REQUEST'], 'GET', '/analytics/top-requests?limit=51');
});

test.serial('hostile keys of top lists neither stop a batch nor end in a list', async (t) => {
  // A window that is over: what runs is known to the last test.
  const at = minuteNow() - 20 * MINUTE_S;
  const hostile = ['a\u0000b', 'a\nb', 'x'.repeat(8192), '\u007f'];
  const before = (await traffic(`range=1h&siteId=${otherId}`)).totals.requests;
  await report([
    {
      site: otherId,
      at,
      requests: 1,
      tops: {
        URL: Object.fromEntries([...hostile, '/__proto__', '"\\\t\u{1f600}', '/\ufffd'].map((key) => [key, 100])),
        ADDRESS: { nowhere: 100, '300.1.1.1': 100 },
        COUNTRY: { de: 100, DEU: 100 },
        NETWORK: { Example: 100 },
      },
    },
  ]);
  const { items } = await topRequests(`range=1h&siteId=${otherId}&limit=50`);
  t.deepEqual(countsOf(items, 'value').slice(0, 2).sort(), [
    ['/__proto__', 100],
    ['/\ufffd', 100],
  ]);
  t.deepEqual((await topRequests(`by=ip&range=1h&siteId=${otherId}`)).items, []);
  t.deepEqual((await api.ok('GET', `/analytics/dimensions?range=1h&siteId=${otherId}`)).countries, []);
  t.is((await traffic(`range=1h&siteId=${otherId}`)).totals.requests, before + 1);
  await api.refused(t, [400, 'BAD_REQUEST'], 'GET', '/analytics/top-requests?siteId=%00');
});

test.serial('lists keep what comes most, and old ones go', async (t) => {
  const { api: sql } = running.running.runtime.pools;
  const later = new Date(Date.now() + 10 * MINUTE_S * 1000);
  const at = minuteNow() - 3 * DAY_S;
  const keys = (from: number) =>
    Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`r${from + n}.example`, from + n]));
  for (let from = 1; from < 121; from += 20)
    await report([{ at, requests: 0, sent: 0n, tops: { REFERRER: keys(from) } }]);
  await takeAllTopMarks(sql, later);
  const kept = async (seconds: number): Promise<number> => {
    const { rows } = await sql.raw<{ rows: { n: number }[] }>(
      `select count(*)::int as n from top_list l, jsonb_object_keys(l.items)
        where site_id = ? and list = ${TopList.REFERRER} and seconds = ? and starts_at <= to_timestamp(?)`,
      [siteId, seconds, at],
    );
    return rows[0]!.n;
  };
  // Of three days ago there are no windows any more.
  t.deepEqual([await kept(300), await kept(3600), await kept(86_400)], [0, 100, 50]);
  const { referrers } = await api.ok('GET', `/analytics/dimensions?range=7d&siteId=${siteId}`);
  t.deepEqual(referrers[0], { host: 'r120.example', requests: 120, bytesSent: 1200 });
  t.is(referrers.length, 50);
  await deleteOldTopLists(sql, new Date(Date.now() + 6 * DAY_S * 1000));
  t.deepEqual([await kept(3600), await kept(86_400)], [0, 50]);
});

test.serial('statistics equal usage over random traffic of sites and nodes', async (t) => {
  const from = Math.floor(nowS() / HOUR_S) * HOUR_S - 5 * DAY_S;
  const usageOf = async (one: string): Promise<Body> => {
    const day = (seconds: number) => new Date(Math.floor(seconds / 300) * 300_000).toISOString();
    return (await api.ok('GET', `/usage/summary?from=${day(nowS() - 7 * DAY_S)}&to=${day(nowS() + 300)}${one}`)).totals;
  };
  let seed = 20_261_127;
  const random = (below: number) => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  for (let batch = 0; batch < 12; batch++) {
    const rows = Array.from({ length: 40 }, () => {
      const requests = random(50);
      const good = random(requests + 1);
      return {
        site: [siteId, otherId, 'foreign', ''][random(4)]!,
        at: from + random(4 * DAY_S),
        requests,
        sent: BigInt(random(1_000_000)),
        statuses: { 200: good, 503: requests - good },
      };
    });
    await report(rows, batch % 2 === 0 ? node : second);
    if (batch % 4 === 3) await rollUp();
  }
  await rollUp();
  for (const one of ['', `&siteId=${siteId}`, `&siteId=${otherId}`]) {
    // The running window is in no record of usage yet.
    const usage = await usageOf(one);
    const { totals } = await traffic(`range=7d${one}`);
    const open = one.endsWith(otherId) ? 0 : 10;
    const counted = (await traffic(`range=1h${one}`)).totals;
    t.true([0, open].includes(totals.requests - Number(usage.requests)), one);
    t.true(counted.requests >= open);
    t.true([0, 6000].includes(totals.bytesSent - Number(usage.bytesSent)), one);
  }
});

test.serial(
  'a period of its own has the shortest points that are kept, and those of the time before on request',
  async (t) => {
    const minute = minuteNow();
    const iso = (seconds: number) => new Date(seconds * 1000).toISOString();
    const asked = (from: number, to: number, more = '') =>
      traffic(`siteId=${siteId}&from=${iso(from)}&to=${iso(to)}${more}`);
    await report([
      { at: minute - 30 * MINUTE_S, requests: 7 },
      { at: minute - 50 * MINUTE_S, requests: 4 },
    ]);
    const zoomed = await asked(minute - 40 * MINUTE_S + 5, minute - 20 * MINUTE_S, '&compare=true');
    t.deepEqual([zoomed.range, zoomed.bucketSeconds, zoomed.points.length], [null, MINUTE_S, 20]);
    t.is(zoomed.from, iso(minute - 40 * MINUTE_S));
    t.true(sumOf(zoomed.points, 'requests') >= 7);
    t.is(zoomed.previousPoints.length, 20);
    t.is(sumOf(zoomed.previousPoints, 'requests'), zoomed.previous.requests);
    t.true(zoomed.previous.requests >= 4);
    t.is((await asked(minute - 40 * MINUTE_S, minute)).previousPoints, null);
    // Minutes are kept for a day, windows for eight days, hours for ninety.
    const lengths = await Promise.all(
      [2, 30, 200].map(
        async (days) => (await asked(minute - days * DAY_S, minute - days * DAY_S + HOUR_S)).bucketSeconds,
      ),
    );
    t.deepEqual(lengths, [300, HOUR_S, DAY_S]);
    // What has not come yet is left out.
    const open = await asked(minute - 60, minute + DAY_S);
    t.true(Date.parse(open.to) <= (minute + 2 * MINUTE_S + 60) * 1000);
    const refused = [
      `from=${iso(minute)}`,
      `to=${iso(minute)}`,
      `range=1h&from=${iso(minute - 60)}&to=${iso(minute)}`,
      `from=${iso(minute)}&to=${iso(minute - 60)}`,
      `from=${iso(minute + DAY_S)}&to=${iso(minute + 2 * DAY_S)}`,
      `from=${iso(minute - 366 * DAY_S)}&to=${iso(minute)}`,
    ];
    for (const path of ['traffic', 'dimensions', 'top-sites', 'top-nodes', 'breakdown']) {
      for (const query of refused) {
        const by = path === 'breakdown' ? '&by=status' : '';
        await api.refused(t, [400, 'ANALYTICS_PERIOD_INVALID'], 'GET', `/analytics/${path}?${query}${by}`);
      }
    }
  },
);

test.serial('sparklines have the requests of each site by hour, also of minutes that are in no sum yet', async (t) => {
  const at = minuteNow();
  const hour = Math.floor(at / HOUR_S) * HOUR_S;
  const read = async () => {
    const { from, bucketSeconds, sites } = await api.ok(
      'GET',
      `/analytics/sparklines?siteIds=${siteId},${otherId},${randomUUID()}`,
    );
    t.is(bucketSeconds, HOUR_S);
    t.is(Date.parse(from) / 1000, hour - 23 * HOUR_S);
    return new Map<string, Body>(sites.map((item: Body) => [item.siteId, item]));
  };
  await rollUp();
  const old = (await read()).get(siteId)!;
  await report([
    { at, requests: 9, statuses: { 200: 5, 502: 4 } },
    { at: hour - 3 * HOUR_S, requests: 3, statuses: { 200: 3 } },
  ]);
  await rollUp();
  const now = await read();
  const more = (field: string, place: number) => now.get(siteId)![field][place] - old[field][place];
  t.deepEqual([more('requests', 23), more('failed', 23), more('requests', 20), more('failed', 20)], [9, 4, 3, 0]);
  t.true([...now.keys()].every((id) => [siteId, otherId].includes(id)));
  await api.refused(t, [400, 'BAD_REQUEST'], 'GET', '/analytics/sparklines');
  const many = Array.from({ length: 101 }, () => randomUUID()).join(',');
  await api.refused(t, [400, 'BAD_REQUEST'], 'GET', `/analytics/sparklines?siteIds=${many}`);
});

test.serial('a cluster has the statistics of its sites and nodes, and of no others', async (t) => {
  const { cluster_id: clusterId } = await api.sql('site').where({ id: siteId }).first('cluster_id');
  const elsewhere = await api.cluster('elsewhere');
  const farId = (await api.site(elsewhere, 'far.example')).id;
  const far = await ReportingNode.enroll(running, elsewhere);
  t.teardown(() => far.stop());
  const tops = { URL: { 'far.example/only': 17 } };
  const counts = { 'failed.origin-timeout': 2, 'browser.chrome': 17 };
  const at = minuteNow() - 30 * MINUTE_S;
  await report([{ site: farId, at, requests: 17, statuses: { 200: 15, 504: 2 }, counts, latency: [0, 17], tops }], far);
  await rollUp();
  for (const range of RANGES) {
    const [all, here, there] = await Promise.all(
      ['', `&clusterId=${clusterId}`, `&clusterId=${elsewhere}`].map((of) => traffic(`range=${range}${of}`)),
    );
    t.is(here!.totals.requests + there!.totals.requests, all!.totals.requests, range);
    t.like(there!.totals, { requests: 17, status2xx: 15, status5xx: 2 }, range);
    t.deepEqual(there!.totals.failures, [{ cause: 'origin-timeout', requests: 2 }]);
    t.deepEqual(there!.statuses, [
      { status: 200, requests: 15 },
      { status: 504, requests: 2 },
    ]);
    t.true(there!.totals.latency.p95Ms > 0);
    const dimensions = await api.ok('GET', `/analytics/dimensions?range=${range}&clusterId=${elsewhere}`);
    t.like(dimensions, { requests: 17, browsers: [{ name: 'chrome', requests: 17 }], unsupportedNodes: 1 });
    const urls = await api.ok('GET', `/analytics/top-requests?range=${range}&clusterId=${elsewhere}`);
    t.deepEqual(urls.items, [{ value: 'far.example/only', requests: 17, bytesSent: 170 }]);
  }
  const ids = async (what: string, of: string) =>
    (await api.ok('GET', `/analytics/${what}?range=7d&${of}`)).items.map(({ id }: Body) => id);
  t.deepEqual(await ids('top-sites', `clusterId=${elsewhere}`), [farId]);
  t.deepEqual(await ids('top-nodes', `clusterId=${elsewhere}`), [far.id]);
  t.false((await ids('top-sites', `clusterId=${clusterId}`)).includes(farId));
  t.deepEqual(await ids('breakdown', `by=site&clusterId=${elsewhere}`), [farId]);
  t.deepEqual(await ids('breakdown', `by=status&clusterId=${elsewhere}`), ['200', '504']);
  t.is((await traffic('clusterId=nothing')).totals.requests, 0);
  for (const path of ['traffic?', 'dimensions?', 'top-requests?', 'breakdown?by=site&']) {
    const query = `/analytics/${path}siteId=${siteId}&clusterId=${clusterId}`;
    await api.refused(t, [400, 'ANALYTICS_QUERY_INVALID'], 'GET', query);
  }
});
