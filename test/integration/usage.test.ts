// Usage: what nodes report, each batch once; records of five minutes; and up to when they are complete.
import test, { type ExecutionContext } from 'ava';
import type { Counter } from 'prom-client';
import { dropOldUsage, makeUsagePartitions, usageFloor } from '../../models/usage/usage-partitions.ts';
import { LOCK_USAGE, moveCompleteUntil } from '../../models/usage/usage-windows.ts';
import { compactBefore } from '../../services/usage/compaction.ts';
import { rollUpUsage } from '../../services/usage/roll-up.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { ReportingNode, servedSite } from '../helpers/reporting-node.ts';
import { Api, type Body } from '../helpers/resources.ts';

const WINDOW_S = 300;
const DAY_S = 86_400;

let running: TestConsole;
let api: Api;
let clusterId: string;
let siteId: string;
let node: ReportingNode;
let sequence = 0n;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  ({ clusterId, siteId, node } = await servedSite(running, api));
});
test.after.always('stop', async () => {
  node?.stop();
  await running?.stop();
});

const iso = (seconds: number) => new Date(seconds * 1000).toISOString();
const windowNow = () => Math.floor(Date.now() / 1000 / WINDOW_S) * WINDOW_S;
/** Each test has an hour of its own, long enough ago. */
let hours = 3;
const freshHour = () => Math.floor(Date.now() / 3_600_000) * 3600 - 3600 * hours++;

interface Row {
  siteId?: string;
  at: number;
  requests?: number;
  sent?: bigint;
  received?: bigint;
}
const minuteOf = ({ siteId: of = siteId, at, requests = 1, sent = 100n, received = 10n }: Row) => ({
  siteId: of,
  minute: BigInt(at),
  requests: BigInt(requests),
  bytesSent: sent,
  bytesReceived: received,
});
const report = async (rows: readonly Row[], more: Body = {}, by = node): Promise<bigint> => {
  const number = more.sequence ?? (by === node ? ++sequence : 1n);
  const answer = await by.connection.call('reportStats', { minutes: rows.map(minuteOf), ...more, sequence: number });
  return answer.acknowledged;
};
const rollUp = () => rollUpUsage(running.running.runtime);
const list = (from: number, to: number, more = ''): Promise<Body> =>
  api.ok('GET', `/usage?from=${iso(from)}&to=${iso(to)}${more}`);
const changes = (afterSeq: string, more = ''): Promise<Body> =>
  api.ok('GET', `/usage/changes?afterSeq=${afterSeq}${more}`);
const completeUntil = async (): Promise<number | null> => {
  const { completeUntil: until } = await changes('0', '&limit=1');
  return until === null ? null : Date.parse(until) / 1000;
};
/** The node's heartbeat is stored, so that none of before is written after this. */
const seen = async (which = node): Promise<void> => {
  const from = Date.now();
  await which.beat();
  await eventually(async () => {
    const row = await api.sql('node_state').where({ node_id: which.id }).first('last_seen_at');
    return row?.last_seen_at?.getTime() >= from;
  });
};
/** Rolls up until it is complete up to a time. */
const completeAt = (at: number) =>
  eventually(async () => {
    await rollUp();
    return (await completeUntil()) === at;
  });

test.serial('a node that never reported a watermark counts from its enrollment', async (t) => {
  await seen();
  await eventually(async () => {
    await rollUp();
    return (await completeUntil()) !== null;
  });
  const { enrolled_at: enrolled } = await api.sql('node').where({ id: node.id }).first('enrolled_at');
  t.is(await completeUntil(), Math.floor(enrolled.getTime() / 1000 / WINDOW_S) * WINDOW_S);
});

test.serial(
  'one record per site per UTC 5-minute window, exact beyond 2^53, windows without traffic have none',
  async (t) => {
    const hour = freshHour();
    const large = 1_000_000_000_000_000n;
    const rows: Row[] = Array.from({ length: 12 }, () => ({ at: hour + 60, sent: large }));
    await report([...rows, { at: hour + 299, requests: 5, sent: 1n }, { at: hour + 600, requests: 7 }]);
    await report([
      { at: hour + 900, requests: 0, sent: 0n, received: 0n },
      { at: hour + 1200, siteId: '' },
    ]);
    await rollUp();
    const { items, nextCursor } = await list(hour, hour + 3600);
    t.is(nextCursor, null);
    t.deepEqual(
      items.map(({ seq: _, updatedAt: __, ...record }: Body) => record),
      [
        {
          id: `${siteId}.${hour}`,
          siteId,
          windowStart: iso(hour),
          windowEnd: iso(hour + 300),
          requests: '17',
          bytesSent: String(12n * large + 1n),
          bytesReceived: '130',
          revision: 1,
        },
        {
          id: `${siteId}.${hour + 600}`,
          siteId,
          windowStart: iso(hour + 600),
          windowEnd: iso(hour + 900),
          requests: '7',
          bytesSent: '100',
          bytesReceived: '10',
          revision: 1,
        },
      ],
    );
    const [sums] = await api.sql('usage_hour').where({ site_id: siteId, starts_at: iso(hour) });
    t.like(sums, { requests: '24', bytes_sent: String(12n * large + 101n) });
    const days = await api.sql('usage_day').where({ site_id: siteId });
    t.is(
      days.reduce((sum, { requests }) => sum + Number(requests), 0),
      24,
    );
  },
);

test.serial(
  'late data that changes a value raises revision and assigns a new seq; unchanged data changes neither',
  async (t) => {
    const hour = freshHour();
    await report([{ at: hour }, { at: hour + 300 }]);
    await rollUp();
    const before = (await list(hour, hour + 600)).items;
    await report([
      { at: hour + 60, requests: 2 },
      { at: hour + 300, requests: 0, sent: 0n, received: 0n },
    ]);
    const last = (await changes('0', '&limit=5000')).lastSeq;
    await rollUp();
    const after = (await list(hour, hour + 600)).items;
    t.like(after[0], { id: before[0].id, requests: '3', revision: 2 });
    t.true(BigInt(after[0].seq) > BigInt(last));
    t.true(Date.parse(after[0].updatedAt) > Date.parse(before[0].updatedAt));
    t.deepEqual(after[1], before[1]);
    t.deepEqual((await changes(last)).items, [after[0]]);
  },
);

test.serial('late data of a site reads and writes the sums of no other', async (t) => {
  const hour = freshHour();
  const other = (await api.site(clusterId, 'other-sums.example')).id;
  await report([{ at: hour }, { at: hour, siteId: other }]);
  await rollUp();
  // A job that sums the hour of all sites again would correct this.
  await api
    .sql('usage_hour')
    .where({ site_id: other, starts_at: iso(hour) })
    .update({ requests: 99 });
  await report([{ at: hour + 60, requests: 4 }]);
  await rollUp();
  const sums = await api
    .sql('usage_hour')
    .where({ starts_at: iso(hour) })
    .orderBy('requests');
  t.deepEqual(
    sums.map(({ site_id: id, requests }) => [id, requests]),
    [
      [siteId, '5'],
      [other, '99'],
    ],
  );
  const [total] = await api.sql('usage_total').where({ seconds: 3600, starts_at: iso(hour) });
  t.is(total.requests, '6');
});

test.serial('a statistics batch reported twice does not change results', async (t) => {
  const hour = freshHour();
  t.is(await report([{ at: hour, requests: 4 }]), sequence);
  t.is(await report([{ at: hour, requests: 4 }], { sequence }), sequence);
  t.is(await report([{ at: hour, requests: 9 }], { sequence: sequence - 1n }), sequence);
  // At once, as after an answer that was lost.
  const next = ++sequence;
  node.reconnect();
  const both = await Promise.all([1, 2].map(() => report([{ at: hour, requests: 1 }], { sequence: next })));
  t.deepEqual(both, [next, next]);
  await rollUp();
  t.is((await list(hour, hour + 300)).items[0].requests, '5');
});

test.serial(
  'a batch beyond the next one is stored only when nothing before it is held, and the time between is a gap',
  async (t) => {
    const hour = freshHour();
    const gaps = () => api.sql('usage_gap').where({ node_id: node.id, reason: 'skipped' });
    t.is(await report([], { sequence: 0n }), sequence);
    t.is(await report([{ at: hour }], { sequence: sequence + 2n, firstHeld: sequence + 1n }), sequence);
    t.deepEqual(await gaps(), []);
    const until = hour - 600;
    await report([], { completeUntil: BigInt(until) });
    sequence += 5n;
    t.is(await report([{ at: hour + 60 }], { sequence, firstHeld: sequence }), sequence);
    const [gap] = await gaps();
    t.like(gap, { starts_at: new Date(until * 1000), ends_at: new Date((hour + 60) * 1000) });
    const told = { from: BigInt(hour + 120), to: BigInt(hour + 121) };
    await report([], { gaps: [told] });
    await report([], { gaps: [told], sequence });
    t.is((await api.sql('usage_gap').where({ node_id: node.id, reason: 'told' })).length, 1);
    for (const bad of [{ sequence: 2n ** 63n }, { sequence: 0n }]) {
      await t.throwsAsync(report([{ at: hour }], bad), { message: /invalid_argument/ });
    }
  },
);

test.serial('a bad row never costs its batch: it is left out and counted', async (t) => {
  const hour = freshHour();
  const misfits = async (reason: string) => {
    const metric = running.running.runtime.metrics.getSingleMetric('svc_usage_misfit_rows_total') as Counter;
    return (await metric.get()).values.find(({ labels }) => labels.reason === reason)?.value ?? 0;
  };
  const reasons = ['bad', 'too_old', 'moved', 'foreign_site'];
  const before = await Promise.all(reasons.map(misfits));
  const foreign = (await api.site(await api.cluster('foreign'), 'foreign.example')).id;
  await report([
    { at: hour, siteId: 'a\u0000b' },
    { at: hour, sent: 2n ** 63n },
    { at: -1 },
    { at: hour - 101 * DAY_S },
    { at: hour, siteId: foreign },
    { at: hour, siteId: 'nothing' },
    { at: hour, requests: 8 },
    { at: windowNow() + 3 * 3600 },
  ]);
  await rollUp();
  t.like(await list(hour, hour + 300), { items: [{ siteId, requests: '8' }] });
  const after = await Promise.all(reasons.map(misfits));
  t.deepEqual(
    after.map((value, index) => value - before[index]!),
    [3, 1, 1, 2],
  );
  t.deepEqual((await list(windowNow() + WINDOW_S, windowNow() + DAY_S)).items, []);
});

test.serial('siteId is retained after the site is deleted, and late data counts for it', async (t) => {
  const hour = freshHour();
  const gone: string = (await api.site(clusterId, 'gone.example')).id;
  await report([{ at: hour, siteId: gone }]);
  await rollUp();
  await api.ok('DELETE', `/sites/${gone}`);
  await report([{ at: hour + 60, siteId: gone }]);
  await rollUp();
  t.like(await list(hour, hour + 300, `&siteId=${gone}`), { items: [{ siteId: gone, requests: '2', revision: 2 }] });
});

test.serial(
  'GET /usage is ordered by window and site and goes on at its cursor; nextCursor is null on the last page',
  async (t) => {
    const hour = freshHour();
    const other: string = (await api.site(clusterId, 'other.example')).id;
    const rows = [0, 300, 600].flatMap((offset) => [siteId, other].map((id) => ({ at: hour + offset, siteId: id })));
    await report(rows);
    await rollUp();
    const all = (await list(hour, hour + 3600)).items.map(({ id }: Body) => id);
    t.is(all.length, 6);
    t.deepEqual(
      all,
      all.toSorted((a: string, b: string) => Number(a.split('.')[1]) - Number(b.split('.')[1]) || (a < b ? -1 : 1)),
    );
    const paged: string[] = [];
    let cursor: string | null = '';
    for (let page = 0; page < 4 && cursor !== null; page++) {
      const answer: Body = await list(hour, hour + 3600, `&limit=2${cursor && `&cursor=${cursor}`}`);
      paged.push(...answer.items.map(({ id }: Body) => id));
      cursor = answer.nextCursor;
    }
    t.is(cursor, null);
    t.deepEqual(paged, all);
    // Half-open: the window that begins at `to` is not in it.
    t.is((await list(hour, hour + 300)).items.length, 2);
    t.is((await list(hour, hour + 3600, `&siteId=${other}`)).items.length, 3);
  },
);

test.serial('ranges and cursors that cannot be are refused', async (t) => {
  const hour = freshHour();
  const range = (from: string, to: string) => `/usage?from=${from}&to=${to}`;
  for (const path of [
    range(iso(hour + 1), iso(hour + 300)),
    range(iso(hour), iso(hour + 60)),
    range(iso(hour), iso(hour)),
    range(iso(hour + 300), iso(hour)),
  ]) {
    await api.refused(t, [400, 'USAGE_RANGE_INVALID'], 'GET', path);
  }
  const whole = range(iso(hour), iso(hour + 3600));
  const outside = Buffer.from(`1 ${hour / WINDOW_S - 1} ${siteId}`).toString('base64url');
  for (const cursor of ['x', 'AAAA', Buffer.from('1 1').toString('base64url'), outside]) {
    await api.refused(t, [400, 'USAGE_CURSOR_INVALID'], 'GET', `${whole}&cursor=${cursor}`);
  }
  const sealed = (text: string) => Buffer.from(text).toString('base64url');
  const good = sealed(`1 ${hour / WINDOW_S} ${siteId}`);
  const bad = [
    '',
    '%00',
    'a%00b',
    '%ff',
    '%',
    '%ED%A0%80',
    '+',
    '%F0%9F%98%80',
    'null',
    '0',
    'x'.repeat(201),
    'x'.repeat(5000),
    `${good}=`,
    `${good}%20`,
    `${good}&cursor=${good}`,
    good.toUpperCase(),
    '!!!!',
    '%7B%22a%22%3A1%7D',
    sealed('{"window":1,"siteId":"a"}'),
    sealed('{"window":'),
    sealed('[]'),
    sealed('null'),
    sealed('page:2'),
    sealed(`2 ${hour / WINDOW_S} ${siteId}`),
    sealed(`1 -1 ${siteId}`),
    sealed(`1 9999999999 ${siteId}`),
    sealed(`1 ${hour / WINDOW_S} ${siteId}\0`),
    sealed(`1 ${hour / WINDOW_S} `),
    '1-0',
  ];
  for (const cursor of bad) {
    await api.refused(t, [400, 'USAGE_CURSOR_INVALID'], 'GET', `${whole}&cursor=${cursor}`);
  }
  for (const cursor of [5, null, {}, ['a']]) {
    const input = { from: iso(hour), to: iso(hour + 3600), cursor };
    const { body } = await api.console.client.request<Body>('POST', '/rpc/usage/list', input, {
      cookie: api.console.client.cookie,
      'x-csrf-token': 'orpc',
    });
    t.is(body.code, 'USAGE_CURSOR_INVALID', JSON.stringify(cursor));
  }
  t.is((await api.call('GET', `${whole}&cursor=${good}`)).status, 200);
  await api.badField(t, '/limit', 'GET', `${whole}&limit=5001`);
  await api.badField(t, '/limit', 'GET', '/usage/changes?limit=0');
  await api.badField(t, '/afterSeq', 'GET', '/usage/changes?afterSeq=-1');
  t.deepEqual((await changes('99999999999999999999')).items, []);
});

test.serial('GET /usage/changes goes through all records in seq order, and lastSeq is passed next', async (t) => {
  const seen: Body[] = [];
  let after = '0';
  for (let page = 0; page < 100; page++) {
    const { items, lastSeq } = await changes(after, '&limit=3');
    if (items.length === 0) t.is(lastSeq, after);
    if (items.length === 0) break;
    seen.push(...items);
    after = lastSeq;
  }
  const numbers = seen.map(({ seq }) => BigInt(seq));
  t.true(numbers.length > 5);
  t.true(numbers.every((seq, index) => index === 0 || seq > numbers[index - 1]!));
  t.is(new Set(seen.map(({ id }) => id)).size, Number((await api.sql('usage_record').count('*').first())!.count));
});

test.serial(
  'completeUntil is the minimum of the watermarks, rounded down to 5 minutes, and only moves forward',
  async (t) => {
    const at = windowNow() - 1200;
    await seen();
    await report([], { completeUntil: BigInt(at + 299) });
    await api.sql('usage_state').update({ complete_until: null });
    await completeAt(at);
    const other = await ReportingNode.enroll(running, clusterId);
    t.teardown(() => other.stop());
    await seen(other);
    await report([], { completeUntil: BigInt(at + 600) }, other);
    await report([], { completeUntil: BigInt(at + 900) });
    await completeAt(at + 600);
    await report([], { completeUntil: BigInt(at) });
    await rollUp();
    t.is(await completeUntil(), at + 600);
    await report([], { completeUntil: BigInt(at + 900) });
    // Disabled nodes are ignored.
    await api.ok('POST', `/nodes/${other.id}/disable`, {});
    await completeAt(at + 900);
    t.pass();
  },
);

test.serial('windows awaiting recomputation hold completeUntil back', async (t) => {
  const before = (await completeUntil())!;
  await report([], { completeUntil: BigInt(Math.floor(Date.now() / 1000)) });
  await api.sql.transaction(async (trx) => {
    // Nobody recomputes meanwhile.
    await trx.raw(LOCK_USAGE);
    await api.sql('usage_dirty').insert({ window_start: iso(before) });
    await moveCompleteUntil(api.sql);
    t.is(await completeUntil(), before);
  });
  await rollUp();
  t.deepEqual(await api.sql('usage_dirty').where('window_start', '<=', iso(before)), []);
  t.true((await completeUntil())! > before);
});

test.serial(
  'a node behind by more than the offline threshold counts as now minus the threshold; one silent for longer is ignored',
  async (t) => {
    await api.ok('PUT', '/settings/usage', { offlineThresholdMinutes: 30 });
    await api.sql('usage_state').update({ complete_until: null });
    const started = Math.floor(Date.now() / 1000);
    await seen();
    await report([], { completeUntil: BigInt(started - 7200) });
    await eventually(async () => {
      await rollUp();
      return (await completeUntil()) !== null;
    });
    const until = (await completeUntil())!;
    t.true(until >= Math.floor((started - 1800) / WINDOW_S) * WINDOW_S);
    t.true(until <= Date.now() / 1000 - 1800);
    await api
      .sql('node_state')
      .where({ node_id: node.id })
      .update({ last_seen_at: iso(started - 3600) });
    await eventually(async () => {
      await api.sql('usage_state').update({ complete_until: null });
      await rollUp();
      return (await completeUntil()) === null;
    });
  },
);

test.serial('settings of usage have their defaults and limits, and are audited', async (t) => {
  t.deepEqual(await api.ok('GET', '/settings/usage'), { retentionDays: 100, offlineThresholdMinutes: 30 });
  for (const body of [{ retentionDays: 34 }, { retentionDays: 401 }]) {
    await api.badField(t, '/retentionDays', 'PUT', '/settings/usage', body);
  }
  for (const offlineThresholdMinutes of [4, 1441]) {
    await api.badField(t, '/offlineThresholdMinutes', 'PUT', '/settings/usage', { offlineThresholdMinutes });
  }
  const saved = { retentionDays: 35, offlineThresholdMinutes: 60 };
  t.deepEqual(await api.ok('PUT', '/settings/usage', saved), saved);
  const { items } = await api.ok('GET', '/audit-logs?action=system.usage_update');
  t.is(items.length, 2);
});

test.serial('a service account with usage:read may list usage, and nothing else of it', async (t) => {
  const { id } = await api.ok('POST', '/service-accounts', { name: 'billing', scopes: ['usage:read'] });
  const { secret } = await api.ok('POST', `/service-accounts/${id}/keys`, {});
  const ask = (path: string) =>
    running.client.request<Body>('GET', `/api/v1${path}`, undefined, { 'x-api-key': secret });
  t.is((await ask(`/usage?from=${iso(windowNow() - 300)}&to=${iso(windowNow())}`)).status, 200);
  t.is((await ask('/usage/changes')).status, 200);
  for (const path of ['summary', 'sites', 'gaps', 'export']) {
    const answer = await ask(`/usage/${path}?from=${iso(windowNow() - 300)}&to=${iso(windowNow())}`);
    t.is(`${answer.status} ${answer.body.code}`, '403 SERVICE_ACCOUNT_FORBIDDEN', path);
  }
  t.is((await ask('/settings/usage')).status, 403);
});

/** A UTC midnight of some days ago, sites of the test's own, and how usage is asked for. */
const summed = async (t: ExecutionContext, domains: readonly string[]) => {
  const midnight = (Math.floor(Date.now() / 1000 / DAY_S) - 6) * DAY_S;
  const sites: string[] = await Promise.all(domains.map(async (domain) => (await api.site(clusterId, domain)).id));
  const ask = (path: string, from: number, to: number, more = ''): Promise<Body> =>
    api.ok('GET', `/usage${path}?from=${iso(from)}&to=${iso(to)}${more}`);
  t.teardown(() => Promise.all(sites.map((id) => api.call('DELETE', `/sites/${id}`))));
  return { midnight, sites, ask };
};

test.serial('usage is summed by windows, hours and days, exact, also where the range cuts them', async (t) => {
  const { midnight, sites, ask } = await summed(t, ['summed-a.example', 'summed-b.example']);
  const [a = '', b = ''] = sites;
  const large = 10n ** 15n;
  const rows = [
    { at: midnight + 300, siteId: a, requests: 1, sent: large },
    { at: midnight + 3600, siteId: a, requests: 10, sent: large },
    { at: midnight + 3600, siteId: b, requests: 100 },
    { at: midnight + DAY_S, siteId: a, requests: 1000, sent: large },
    { at: midnight + 2 * DAY_S + 7500, siteId: a, requests: 10_000 },
  ];
  await report(rows);
  await rollUp();
  const day = await ask('/summary', midnight, midnight + DAY_S);
  t.is(day.bucketSeconds, 300);
  t.is(day.points.length, 288);
  t.deepEqual(day.points[12], {
    start: iso(midnight + 3600),
    requests: '110',
    bytesSent: `${large + 100n}`,
    bytesReceived: '20',
  });
  t.deepEqual(day.totals, { requests: '111', bytesSent: `${2n * large + 100n}`, bytesReceived: '30' });
  t.is(day.completeUntil, (await changes('0', '&limit=1')).completeUntil);
  for (const [more, requests] of [
    ['', ['111', '1000', '10000']],
    [`&siteId=${a}`, ['11', '1000', '10000']],
  ] as const) {
    const long = await ask('/summary', midnight - 17 * DAY_S, midnight + 3 * DAY_S, more);
    t.is(long.bucketSeconds, 86_400);
    t.is(long.points.length, 20);
    t.deepEqual(
      long.points.slice(17).map((point: Body) => point.requests),
      requests,
    );
    // Without its first ten minutes and its last hours.
    const end = midnight + 2 * DAY_S + 7500;
    const cut = await ask('/summary', midnight + 600, end, more);
    t.is(cut.bucketSeconds, 3600);
    t.is(cut.points[0].start, iso(midnight));
    t.is(cut.totals.requests, more ? '1010' : '1110');
    t.is((await ask('/summary', midnight + 600, end + 300, more)).totals.requests, more ? '11010' : '11110');
  }
  t.is((await ask('/summary', midnight, midnight + 400 * DAY_S)).points.length, 400);
  for (const path of ['/summary', '/sites', '/gaps', '/export']) {
    const refused = `/usage${path}?from=${iso(midnight)}&to=${iso(midnight + 400 * DAY_S + 300)}`;
    await api.refused(t, [400, 'USAGE_RANGE_INVALID'], 'GET', refused);
  }
});

test.serial('sites are listed by their usage of a range, those deleted under the name they had', async (t) => {
  const { midnight, sites, ask } = await summed(t, ['listed-a.example', 'listed-b.example', 'listed-c.example']);
  const from = midnight + 3 * DAY_S;
  const to = from + 2 * DAY_S + 300;
  await report(
    sites.flatMap((id, index) => [
      { at: from + 300, siteId: id, requests: 5 + index },
      { at: from + 7200, siteId: id, sent: BigInt(1000 * (3 - index)) },
      { at: from + 2 * DAY_S, siteId: id },
    ]),
  );
  await rollUp();
  await api.ok('DELETE', `/sites/${sites[1]}`);
  const { items, total } = await ask('/sites', from + 300, to);
  t.is(total, 3);
  t.deepEqual(
    items.map(({ name, deleted, requests, bytesSent }: Body) => [name, deleted, requests, bytesSent]),
    [
      ['listed-a.example', false, '7', '3200'],
      ['listed-b.example', true, '8', '2200'],
      ['listed-c.example', false, '9', '1200'],
    ],
  );
  t.is((await ask('/sites', from + 600, to - 300)).items[0].requests, '1');
  const found = await ask('/sites', from, to, '&search=LISTED-B');
  t.like(found, { total: 1, items: [{ id: sites[1], deleted: true }] });
  const second = await ask('/sites', from, to, '&sort=-requests&page=2&pageSize=2');
  t.like(second, { total: 3, items: [{ id: sites[0] }] });
  t.deepEqual(await ask('/sites', from, to, '&page=9'), { total: 3, items: [] });
  t.deepEqual(await ask('/sites', from, from + 300, '&search=listed-a'), { total: 0, items: [] });
});

test.serial('gaps of a range are listed with their node, also when it is gone', async (t) => {
  const { midnight, sites, ask } = await summed(t, ['gap.example']);
  const from = midnight;
  const gap = (nodeId: string, start: number, end: number) => ({
    node_id: nodeId,
    starts_at: iso(from + start),
    ends_at: iso(from + end),
    reason: 'told',
  });
  const elsewhere = await api.node(await api.cluster('elsewhere'), 'elsewhere');
  await api
    .sql('usage_gap')
    .insert([
      gap(node.id, -100, 0),
      gap(node.id, -10, 10),
      gap('gone', 20, 20),
      gap(elsewhere, 280, 400),
      gap(node.id, 300, 301),
    ]);
  const { items, total } = await ask('/gaps', from, from + 300);
  t.is(total, 3);
  const { name } = await api.sql('node').where({ id: node.id }).first('name');
  t.deepEqual(
    items.map(({ nodeId, nodeName, from: start }: Body) => [nodeId, nodeName, start]),
    [
      [elsewhere, 'elsewhere', iso(from + 280)],
      ['gone', null, iso(from + 20)],
      [node.id, name, iso(from - 10)],
    ],
  );
  t.like(items[2], { to: iso(from + 10), reason: 'told' });
  t.is((await ask('/gaps', from, from + 300, `&siteId=${sites[0]}`)).total, 2);
  t.like(await ask('/gaps', from, from + 300, '&pageSize=1&page=2'), { total: 3, items: [{ nodeId: 'gone' }] });
});

test.serial('all records of a range are exported as CSV; no spreadsheet takes a name for a formula', async (t) => {
  const { midnight, sites, ask } = await summed(t, ['exported-a.example', 'exported-b.example']);
  const [a = '', b = ''] = sites;
  await api.ok('PATCH', `/sites/${a}`, { name: '=HYPERLINK("x"), "a"' });
  const from = midnight + DAY_S + 7200;
  await report([
    { at: from, siteId: a },
    { at: from, siteId: b, requests: 3, sent: 10n ** 15n - 1n },
  ]);
  await rollUp();
  // More than one piece.
  const more = 4100;
  await api.sql.raw(
    `insert into usage_record (window_start, site_id, requests, bytes_sent, bytes_received, seq, updated_at)
      select ?, 'z' || n, 1, 2, 3, nextval('usage_seq'), now() from generate_series(1, ?::int) n`,
    [iso(from), more],
  );
  const answer = await api.call('GET', `/usage/export?from=${iso(from)}&to=${iso(from + 300)}`);
  t.is(answer.headers.get('content-type'), 'text/csv; charset=utf-8');
  t.regex(answer.headers.get('content-disposition')!, /^attachment; filename="usage-\d{8}T\d{4}-\d{8}T\d{4}\.csv"$/);
  const [head, ...lines]: string[] = answer.body.split('\r\n');
  t.is(head, 'window_start,window_end,site_id,site_name,requests,bytes_sent,bytes_received,revision,updated_at');
  t.is(lines.pop(), '');
  t.is(lines.length, more + 2);
  t.is(new Set(lines).size, more + 2);
  const ofA = lines.find((line) => line.includes(a))!;
  const ofB = lines.find((line) => line.includes(b))!;
  t.true(ofA.startsWith(`${iso(from)},${iso(from + 300)},${a},"'=HYPERLINK(""x""), ""a""",1,100,10,1,`), ofA);
  t.true(ofB.includes(`,${b},exported-b.example,3,${10n ** 15n - 1n},10,1,`), ofB);
  // The same to a session and to the typed client; with its head also where there is nothing.
  const input = { from: iso(from), to: iso(from + 300), siteId: b };
  t.is(await running.client.rpc<string>('usage.export', input), `${head}\r\n${ofB}\r\n`);
  t.is(await running.client.typed.usage.export(input), `${head}\r\n${ofB}\r\n`);
  t.is(await ask('/export', from - 600, from - 300), `${head}\r\n`);
});

test.serial('old minutes become a row of each site, window and cluster, which says the same', async (t) => {
  const hour = freshHour();
  const large = 1_000_000_000_000_000n;
  const counted = (at: number, more: Body) => ({ ...minuteOf({ at, sent: large }), ...more });
  const minutes = [
    counted(hour, { statuses: [{ code: 200, count: 3n }], latency: [1n, 2n], cacheHits: 2n, cacheHitBytes: large }),
    counted(hour + 60, { statuses: [{ code: 200, count: 4n }], counts: [{ name: 'blocked.ban', count: 5n }] }),
    counted(hour + 299, {
      ...{ statuses: [{ code: 404, count: 1n }], latency: [0n, 1n, 7n] },
      ...{ cacheHits: 1n, cacheMisses: 4n, cacheHitBytes: 5n },
    }),
    counted(hour + 300, {}),
  ];
  await report([], { minutes });
  await report([], { minutes: Array.from({ length: 11 }, () => counted(hour, {})) });
  await rollUp();
  const before = await list(hour, hour + 600);
  const { lastSeq } = await changes('0', '&limit=5000');
  const compact = () => compactBefore(running.running.runtime, new Date((hour + 600) * 1000));
  const stored = async () => {
    const rows = await api.sql('usage_window').where('window_start', '>=', iso(hour)).orderBy('window_start');
    return rows.map(({ window_start: start, site_id: _, cluster_id: __, ...row }) => [start.getTime() / 1000, row]);
  };
  await compact();
  t.is(
    (
      await api
        .sql('usage_minute')
        .where('minute', '>=', iso(hour))
        .where('minute', '<', iso(hour + 600))
    ).length,
    0,
  );
  const first = {
    requests: '14',
    bytes_sent: String(14n * large),
    bytes_received: '140',
    ...{ cache_hits: '3', cache_misses: '4', cache_hit_bytes: String(large + 5n) },
    statuses: { 200: 7, 404: 1 },
    counts: { 'blocked.ban': 5 },
    latency: [1, 3, 7],
  };
  const none = {
    ...{ cache_hits: '0', cache_misses: '0', cache_hit_bytes: '0' },
    ...{ statuses: null, counts: null, latency: null },
  };
  const second = { requests: '1', bytes_sent: String(large), bytes_received: '10', ...none };
  t.deepEqual(await stored(), [
    [hour, first],
    [hour + 300, second],
  ]);
  // Counted again from there, nothing is different; what comes late is added, and joins it the next time.
  await api.sql('usage_dirty').insert([{ window_start: iso(hour) }, { window_start: iso(hour + 300) }]);
  await rollUp();
  t.deepEqual((await changes(lastSeq)).items, []);
  await report([], { minutes: [counted(hour + 120, { counts: [{ name: 'blocked.ban', count: 1n }] })] });
  await rollUp();
  const { items } = await list(hour, hour + 600);
  t.like(items[0], { requests: '15', bytesSent: String(15n * large), revision: 2 });
  t.deepEqual(items[1], before.items[1]);
  await compact();
  t.like((await stored())[0]![1], { requests: '15', statuses: first.statuses, counts: { 'blocked.ban': 6 } });
});

test.serial(
  'hits, misses and bytes of the cache are summed over time, before and after minutes become windows',
  async (t) => {
    const { id } = await api.site(clusterId, 'cached.example');
    const now = Math.floor(Date.now() / 60_000) * 60;
    const counted = (at: number, cacheHits: bigint, cacheMisses: bigint) => ({
      ...minuteOf({ siteId: id, at, requests: 9, sent: 1000n }),
      ...{ cacheHits, cacheMisses, cacheHitBytes: 100n * cacheHits },
    });
    await report([], {
      minutes: [counted(now - 7200, 2n, 1n), counted(now - 7200, 1n, 0n), counted(now - 120, 3n, 2n)],
    });
    const usage = (range: string): Promise<Body> => api.ok('GET', `/sites/${id}/cache/usage?range=${range}`);
    const totals = { hits: 6, misses: 3, hitBytes: 600, bytesSent: 3000 };
    const check = async () => {
      const day = await usage('24h');
      t.deepEqual(day.totals, totals);
      t.is(day.points.length, 48);
      t.deepEqual(
        day.points.filter(({ hits }: Body) => hits > 0).map(({ hits }: Body) => hits),
        [3, 3],
      );
      t.deepEqual((await usage('1h')).totals, { hits: 3, misses: 2, hitBytes: 300, bytesSent: 1000 });
    };
    await check();
    await compactBefore(running.running.runtime, new Date((now - 3600) * 1000));
    await check();
    await api.refused(t, [404, 'SITE_NOT_FOUND'], 'GET', '/sites/nobody/cache/usage');
  },
);

test.serial('a stored gap with a far end is swept like every other', async (t) => {
  const now = Date.now();
  const { node_id: nodeId } = await api.sql('node_state').first('node_id');
  const far = {
    node_id: nodeId,
    starts_at: new Date(now - DAY_S * 1000),
    ends_at: new Date('9000-01-01'),
    reason: 'told',
  };
  const [{ id }] = await api.sql('usage_gap').insert(far).returning('id');
  const gap = () => api.sql('usage_gap').where({ id }).first();
  await dropOldUsage(api.sql, new Date(now));
  t.is((await gap()).ends_at.getTime(), now);
});

test.serial('weeks are made ahead without a hole and dropped as a whole when they are too old', async (t) => {
  const sql = api.sql;
  const now = Date.now();
  const later = new Date(now + 21 * DAY_S * 1000);
  const floor = (await usageFloor(sql, new Date(now)))!;
  await makeUsagePartitions(sql, later);
  t.is(await usageFloor(sql, later), floor);
  const count = async () =>
    (await sql.raw(`select count(*)::int from pg_partition_tree('usage_minute') where isleaf`)).rows[0].count;
  t.is(await count(), Math.floor((later.getTime() - floor) / (7 * DAY_S * 1000)) + 3);
  t.deepEqual(await dropOldUsage(sql, new Date(floor + 35 * DAY_S * 1000)), []);
  const dropped = await dropOldUsage(sql, new Date(floor + 42 * DAY_S * 1000));
  t.is(dropped.length, 3);
  t.is(await usageFloor(sql, later), floor + 7 * DAY_S * 1000);
});

for (const [what, statement] of [
  ['week of usage', "select range_partition('usage_minute', '2031-01-06', 7)"],
  ['day of security events', "select range_partition('security_event', '2031-01-06', 1)"],
] as const)
  test(`two processes that make the same ${what} at once both have it`, async (t) => {
    const first = await api.sql.transaction();
    const second = await api.sql.transaction();
    try {
      await first.raw(statement);
      // Has looked and found nothing when the first commits.
      const { pid } = (await second.raw('select pg_backend_pid() as pid')).rows[0];
      const waiting = t.notThrowsAsync(second.raw(statement).then());
      const waits = 'select from pg_locks where pid = ? and not granted';
      await eventually(async () => (await api.sql.raw(waits, [pid])).rows.length > 0);
      await first.commit();
      await waiting;
    } finally {
      await first.rollback().catch(() => undefined);
      await second.rollback().catch(() => undefined);
    }
  });
