// What every store of request logs does. A store runs the suite over its own writer and reader.
import type { ExecutionContext } from 'ava';
import type { LogReader, LogSearch } from '../../models/logs/log-reader.ts';
import type { LogRow } from '../../models/logs/log-row.ts';
import type { LogBatch, LogWriter } from '../../models/logs/log-writer.ts';

export interface LogStoreUnderTest {
  writer: LogWriter;
  reader: LogReader;
  /** A cluster and two of its sites. */
  clusterId: string;
  siteIds: readonly [string, string];
}

let made = 0;

export function logRow(siteId: string, at: number, more: Partial<LogRow> = {}): LogRow {
  const id = `00000000-0000-4000-8000-${(made++).toString(16).padStart(12, '0')}`;
  const none = { requestId: null, cacheStatus: null, ja4: null, userAgent: null, referer: null, peerIp: null };
  const origin = { upstream: null, upstreamStatus: null, upstreamMs: null, contentType: null, errorCode: null };
  const place = { country: null, asn: null, asName: null, tlsVersion: null };
  const refusal = { blockReason: null, blockRuleId: null, wafRuleIds: [], wafBlocked: false, ruleIds: [] };
  return {
    ...{ siteId, at, id, nodeId: 'node', clientIp: '203.0.113.7', method: 'GET', host: 'a.example', path: '/' },
    ...{ status: 200, bytesSent: 100, requestBytes: 50, durationMs: 3, sampleRate: 10_000, httpVersion: '1.1' },
    ...{ secure: false, query: null, headers: [] },
    ...none,
    ...origin,
    ...place,
    ...refusal,
    ...more,
  };
}

/** Each property by its name. `at` is a time of the second before the search ends. */
export const LOG_STORE_SUITE: Readonly<
  Record<string, (t: ExecutionContext, store: LogStoreUnderTest, at: number) => Promise<void>>
> = {
  'rows come latest first, by time and id, page after page': async (t, store, at) => {
    const [siteId] = store.siteIds;
    const rows = Array.from({ length: 25 }, (_, index) => logRow(siteId, at - (index % 5)));
    await store.writer.append(batchOf(store, rows));
    const wanted = rows.toSorted((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1)).map(({ id }) => id);
    const found: string[] = [];
    for (let after: LogRow | null = null; ; ) {
      const page = await store.reader.page(searchOf(siteId, at), after, 7);
      found.push(...page.map(({ id }) => id));
      if (page.length < 7) break;
      after = page.at(-1)!;
    }
    t.deepEqual(found, wanted);
  },
  'a row comes back as it was, and what a request did not have is null': async (t, store, at) => {
    const [siteId] = store.siteIds;
    const bare = logRow(siteId, at - 1, { clientIp: null, status: 0 });
    const full = logRow(siteId, at, {
      ...{ requestId: 'r', cacheStatus: 'HIT', ja4: 't13d', wafRuleIds: [942100, 941100], wafBlocked: true },
      ...{ userAgent: 'agent', referer: 'https://b.example/', ruleIds: ['one', 'platform:two'], peerIp: '2001:db8::1' },
      ...{
        country: 'DE',
        asn: 4_294_967_295,
        asName: 'A',
        upstream: '10.0.0.1:80',
        upstreamStatus: 502,
        upstreamMs: 9,
      },
      ...{ contentType: 'text/html', tlsVersion: '1.3', blockReason: 'crs', blockRuleId: 'one', query: 'a=b' },
      ...{ headers: [{ name: 'x', value: 'y' }], errorCode: 'waf-blocked', secure: true, bytesSent: 2 ** 40 },
    });
    await store.writer.append(batchOf(store, [bare, full]));
    t.deepEqual(await store.reader.page(searchOf(siteId, at), null, 10), [full, bare]);
  },
  'a row that comes twice is there once, also under a request id that many have': async (t, store, at) => {
    const [siteId] = store.siteIds;
    const rows = [1, 2, 3].map((number) => logRow(siteId, at - number, { requestId: 'constant' }));
    t.like(await store.writer.append(batchOf(store, rows)), { stored: 3, doubles: 0 });
    const again = batchOf(store, [...rows, logRow(siteId, at, { requestId: 'constant' })]);
    t.like(await store.writer.append(again), { stored: 1, doubles: 3 });
    const search = searchOf(siteId, at, { requestId: 'constant' });
    t.is((await store.reader.page(search, null, 10)).length, 4);
  },
  'hostile text is stored and found as it is': async (t, store, at) => {
    const [siteId] = store.siteIds;
    const texts = [
      '=1+1',
      '\u001b[31mred',
      'tab\tand\nline\r',
      'a\\b\\N',
      '%_"\'',
      '\\.',
      'é\u{1f600}',
      '/'.repeat(2048),
    ];
    const rows = texts.map((path, index) => logRow(siteId, at - index, { path, userAgent: path.slice(0, 400) }));
    await store.writer.append(batchOf(store, rows));
    t.deepEqual(
      (await store.reader.page(searchOf(siteId, at), null, 100)).map(({ path }) => path),
      texts,
    );
    t.is((await store.reader.page(searchOf(siteId, at, { ua: '%_"' }), null, 10)).length, 1);
  },
  'a row that the store does not take costs no other row, and counts as missing': async (t, store, at) => {
    const [siteId] = store.siteIds;
    const rows = Array.from({ length: 9 }, (_, index) => logRow(siteId, at - index));
    const bad = [logRow(siteId, at, { path: 'a\0b' }), logRow(siteId, at, { clientIp: 'nowhere' })];
    const mixed = [...rows.slice(0, 4), bad[0]!, ...rows.slice(4), bad[1]!];
    t.like(await store.writer.append(batchOf(store, mixed)), { stored: 9, refused: 2 });
    t.is((await store.reader.page(searchOf(siteId, at), null, 100)).length, 9);
    t.is(await store.reader.missing(nowOf(siteId)), 2);
  },
  'rows of a site of another cluster, or of none, are refused': async (t, store, at) => {
    const [siteId] = store.siteIds;
    t.like(await store.writer.append(batchOf(store, [logRow('nowhere', at), logRow(siteId, at)])), {
      stored: 1,
      refused: 1,
    });
    const other = { ...batchOf(store, [logRow(siteId, at)]), clusterId: 'other' };
    t.like(await store.writer.append(other), { stored: 0, refused: 1 });
  },
  'losses are sums of a ring: said twice they count once': async (t, store) => {
    const [siteId] = store.siteIds;
    const lost = (ring: bigint, rows: number) =>
      store.writer.append({ ...batchOf(store, []), ring, losses: [{ siteId, rows }] });
    const ring = BigInt(Date.now());
    await lost(ring, 5);
    await lost(ring, 5);
    await lost(ring, 8);
    await lost(ring, 3);
    await lost(ring + 1n, 4);
    t.is(await store.reader.missing(nowOf(siteId)), 12);
  },
  'each filter finds its rows alone': async (t, store, at) => {
    const [siteId, other] = store.siteIds;
    const one = logRow(siteId, at, {
      ...{ status: 404, clientIp: '198.51.100.9', method: 'POST', host: 'b.example', path: '/shop/cart' },
      ...{ requestId: 'mine', cacheStatus: 'MISS', blockReason: 'rule', country: 'FR', asn: 64_500, ja4: 't13' },
      ...{ userAgent: 'Mozilla Firefox', referer: 'https://c.example/x', durationMs: 900 },
    });
    await store.writer.append(
      batchOf(store, [one, logRow(siteId, at), { ...one, id: logRow(other, at).id, siteId: other }]),
    );
    for (const filter of [
      ...[{ status: 404 }, { statusClass: 4 }, { ip: '198.51.100.9' }, { cidr: '198.51.100.0/24' }, { method: 'POST' }],
      ...[{ host: 'B.example' }, { path: '/shop' }, { requestId: 'mine' }, { cacheStatus: 'MISS' }],
      ...[{ blockReason: 'rule' }, { blockReason: 'any' }, { country: 'FR' }, { asn: 64_500 }, { ua: 'firefox' }],
      ...[{ referer: 'C.EXAMPLE' }, { minDuration: 900 }, { ja4: 't13' }],
    ]) {
      const found = await store.reader.page(searchOf(siteId, at, filter), null, 10);
      t.deepEqual(found, [one], JSON.stringify(filter));
    }
    for (const filter of [{ status: 403 }, { path: '/cart' }, { cidr: '10.0.0.0/8' }, { blockReason: 'crs' }])
      t.deepEqual(await store.reader.page(searchOf(siteId, at, filter), null, 10), [], JSON.stringify(filter));
  },
  'counts are multiplied by the sample rate of each row': async (t, store, at) => {
    const [siteId] = store.siteIds;
    const rows = [
      logRow(siteId, at, { sampleRate: 100, status: 500, path: '/rare' }),
      logRow(siteId, at, { blockReason: 'rule', status: 403 }),
      logRow(siteId, at),
    ];
    await store.writer.append(batchOf(store, rows));
    const [bucket] = await store.reader.histogram(searchOf(siteId, at), 3_600_000);
    t.like(bucket, { rows: 3, requests: 102, clientErrors: 1, serverErrors: 100, blocked: 1, sampled: true });
    t.deepEqual(await store.reader.top(searchOf(siteId, at), 'path', 10), [
      { value: '/rare', rows: 1, requests: 100, sampled: true },
      { value: '/', rows: 2, requests: 2, sampled: false },
    ]);
    t.like(await store.reader.top(searchOf(siteId, at), 'country', 10), [{ value: null, rows: 3, requests: 102 }]);
  },
};

function batchOf({ clusterId }: LogStoreUnderTest, rows: readonly LogRow[]): LogBatch {
  return { nodeId: 'node', clusterId, rows, aside: [], ring: 1n, losses: [] };
}

function searchOf(siteId: string, at: number, filter: LogSearch['filter'] = {}): LogSearch {
  return { siteId, from: at - 1000, to: at + 1, filter };
}

const nowOf = (siteId: string) => ({ siteId, from: Date.now() - 1000, to: Date.now() + 1000 });
