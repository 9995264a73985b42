// Lists can be sorted: by the fields their procedure names, in both directions, page after page without a gap.
import test from 'ava';
import { PROCEDURES } from '../../contract/index.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { Api, type Body } from '../helpers/resources.ts';
import { testCertificate } from '../helpers/site-certificates.ts';

let running: TestConsole;
let api: Api;

test.before(async () => {
  running = await startTestConsole();
  api = new Api(running);
});
test.after.always(() => running?.stop());

interface SortedList {
  path: string;
  /** Makes what is listed and answers the filter under which nothing else is. */
  fill(): Promise<string>;
  /** What each field of `sort` reads of a row. */
  fields: Record<string, (row: Body) => string | number>;
}

const memory = (row: Body) => (row.metrics ? row.metrics.memoryUsedBytes / row.metrics.memoryTotalBytes : -1);

const LISTS: Record<string, SortedList> = {
  'sites.list': {
    path: '/sites',
    fill: async () => {
      const clusterId = await api.cluster('sorted');
      const made = [];
      for (const name of ['beta', 'Alpha', 'gamma', 'Alpha']) {
        made.push(await api.site(clusterId, `sorted-${made.length}.example`, { name }));
      }
      await api.ok('PATCH', `/sites/${made[1].id}`, { name: 'delta' });
      return `clusterId=${clusterId}`;
    },
    fields: { name: (row) => row.name.toLowerCase(), createdAt: (row) => row.id, updatedAt: (row) => row.updatedAt },
  },
  'bans.list': {
    path: '/bans',
    fill: async () => {
      for (const [index, durationSeconds] of [900, 60, 86_400, 900].entries()) {
        const cidr = `203.0.113.${index}`;
        await api.ok('POST', '/bans', { scope: 'platform', cidr, reason: 'other', durationSeconds });
      }
      return 'address=203.0.113.0/24';
    },
    fields: { createdAt: (row) => row.createdAt, expiresAt: (row) => row.expiresAt },
  },
  'nodes.list': {
    path: '/nodes',
    fill: async () => {
      const clusterId = await api.cluster('busy');
      for (const [index, cpuPercent] of [30, 5, null, 90].entries()) {
        const id = await api.node(clusterId, `node-${index}`);
        const metrics = { cpuPercent, memoryUsedBytes: (index * 7) % 4, memoryTotalBytes: 4 };
        const last_seen_at = new Date(Date.now() - ((index * 3) % 4) * 1000);
        await api.sql('node_state').where({ node_id: id }).update({ last_seen_at });
        if (cpuPercent !== null) await api.sql('node_state').where({ node_id: id }).update({ metrics });
      }
      return `clusterId=${clusterId}`;
    },
    fields: {
      name: (row) => row.name,
      lastSeenAt: (row) => row.lastSeenAt,
      cpuPercent: (row) => row.metrics?.cpuPercent ?? -1,
      memoryPercent: memory,
    },
  },
  'auditLogs.list': {
    path: '/audit-logs',
    fill: async () => {
      const at = (second: number) => new Date(Date.UTC(2020, 0, 1, 0, 0, second));
      const entries = [3, 1, 2, 1].map((second) => ({
        occurred_at: at(second),
        actor_type: 'system',
        action: 'sorted',
      }));
      await api.sql('audit_entry').insert(entries);
      return 'action=sorted';
    },
    fields: { occurredAt: (row) => row.occurredAt },
  },
  'certificates.list': {
    path: '/certificates',
    fill: async () => {
      for (const [index, days] of [30, 10, 20, 40].entries()) {
        const notAfter = new Date(Date.now() + days * 86_400_000);
        const { chainPem, privateKeyPem } = await testCertificate([`sorted-${index}.example`], { notAfter });
        const name = `sorted ${(index * 3) % 4}`;
        await api.ok('POST', '/certificates/upload', { name, chainPem, privateKeyPem });
      }
      return 'search=sorted';
    },
    fields: { name: (row) => row.name, notAfter: (row) => row.notAfter, createdAt: (row) => row.createdAt },
  },
  'usage.sites': {
    path: '/usage/sites',
    fill: async () => {
      const at = new Date(Date.UTC(2020, 0, 1));
      await api.sql.raw('select range_partition(?, ?::date, 7)', ['usage_record', '2019-12-30']);
      const sums = [3, 1, 2, 1].map((requests, index) => ({
        window_start: at,
        site_id: `sorted-${index}`,
        requests,
        bytes_sent: (index * 3) % 4,
        bytes_received: 10 - index,
        seq: 0,
        updated_at: at,
      }));
      await api.sql('usage_record').insert(sums);
      return 'from=2020-01-01T00:00:00Z&to=2020-01-01T00:05:00Z';
    },
    fields: {
      requests: (row) => Number(row.requests),
      bytesSent: (row) => Number(row.bytesSent),
      bytesReceived: (row) => Number(row.bytesReceived),
    },
  },
};

interface SortSchema {
  anyOf: { const: string }[];
}

test('every list that can be sorted stands here, with every field', (t) => {
  const declared = [...PROCEDURES.values()].flatMap(({ name, input }) => {
    const sort = input.properties.sort as SortSchema | undefined;
    return sort ? [[name, sort.anyOf.map((each) => each.const).sort()]] : [];
  });
  const here = Object.entries(LISTS).map(([name, { fields }]) => [
    name,
    Object.keys(fields)
      .flatMap((field) => [field, `-${field}`])
      .sort(),
  ]);
  t.deepEqual(Object.fromEntries(declared), Object.fromEntries(here));
});

for (const [name, { path, fill, fields }] of Object.entries(LISTS)) {
  test(`${name} is sorted by each of its fields, in both directions, over all its pages`, async (t) => {
    const filter = await fill();
    const list = async (query: string): Promise<Body[]> => (await api.ok('GET', `${path}?${filter}&${query}`)).items;
    for (const [field, read] of Object.entries(fields)) {
      const ascending = await list(`sort=${field}`);
      t.is(ascending.length, 4);
      const values = ascending.map(read);
      t.deepEqual(
        values,
        values.toSorted((a, b) => (a < b ? -1 : Number(a > b))),
        field,
      );
      t.true(new Set(values).size > 1, `${field} has something to sort`);
      const backwards = await list(`sort=-${field}`);
      t.deepEqual(
        backwards.map(({ id }) => id),
        ascending.map(({ id }) => id).toReversed(),
        `-${field}`,
      );
      const paged = [];
      for (const page of [1, 2, 3, 4]) paged.push(...(await list(`sort=-${field}&pageSize=1&page=${page}`)));
      t.deepEqual(
        paged.map(({ id }) => id),
        backwards.map(({ id }) => id),
        `${field}, page by page`,
      );
    }
    await api.badField(t, '/sort', 'GET', `${path}?sort=id`);
    await api.badField(t, '/sort', 'GET', `${path}?sort=${encodeURIComponent('name; drop table site')}`);
  });
}

test('a search for sites is sorted as the list is', async (t) => {
  const clusterId = await api.cluster('searched');
  for (const name of ['Found B', 'found a', 'Lost']) {
    await api.site(clusterId, `${name.replace(' ', '-').toLowerCase()}.searched.example`, { name });
  }
  const names = async (sort: string) =>
    (await api.ok('GET', `/sites?clusterId=${clusterId}&search=found&sort=${sort}`)).items.map(
      (site: Body) => site.name,
    );
  t.deepEqual(await names('name'), ['found a', 'Found B']);
  t.deepEqual(await names('-name'), ['Found B', 'found a']);
});
