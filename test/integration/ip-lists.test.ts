import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { requestPublication } from '../../models/config/publish-requests.ts';
import { chunkOf } from '../../models/rules/ip-list.ts';
import type { IpListUser, IpListUsers } from '../../models/rules/ip-list-user.ts';
import { publishClusterRequests } from '../../pipeline/publish-requested.ts';
import { IpListChunkSchema, IpListKind, IpListSchema } from '../../proto/gen/svc/config/v1/cluster_pb.js';
import { systemCall } from '../../runtime/call.ts';
import { write } from '../../runtime/write.ts';
import { usersOfIpList } from '../../services/ip-lists/references.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { WAITS_FOR_THIS_SESSION } from '../helpers/lock-waits.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let clusters: string[];

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  clusters = [await api.cluster('one'), await api.cluster('two')];
});
test.after.always('stop', () => running?.stop());
test.beforeEach('start empty', async () => {
  await api.sql('ip_list').delete();
});

const create = (name: string, kind: string, entries: string[]) => api.ok('POST', '/ip-lists', { name, kind, entries });
const addresses = (count: number, from = 0) =>
  Array.from(
    { length: count },
    (_, n) => `100.${((from + n) >> 16) & 255}.${((from + n) >> 8) & 255}.${(from + n) & 255}`,
  );

/** The list as a cluster's entries have it. */
async function published(cluster: string, id: string): Promise<Body> {
  const header = await api.entry(cluster, 'ip-list', id);
  if (!header) return undefined;
  const chunks = (await api.entries(cluster, 'ip-list-chunk')).filter((chunk) => chunk.startsWith(`${id}/`));
  const cidrs: string[] = [];
  for (const chunk of chunks) {
    const message = fromBinary(IpListChunkSchema, (await api.entry(cluster, 'ip-list-chunk', chunk))!);
    for (const cidr of message.cidrs) {
      if (chunk !== `${id}/${chunkOf(cidr)}` || message.listId !== id) throw new Error(`${cidr} in ${chunk}`);
    }
    cidrs.push(...message.cidrs);
  }
  return { ...fromBinary(IpListSchema, header), cidrs: cidrs.sort(), chunks: chunks.length };
}

test.serial('a list is normalised, published on every cluster in chunks, audited', async (t) => {
  const list = await create('office', 'allow', ['2001:DB8::1', '192.0.2.7/24', '192.0.2.0/24', '::ffff:10.0.0.1']);
  t.like(list, {
    name: 'office',
    kind: 'allow',
    entries: ['10.0.0.1/32', '192.0.2.0/24', '2001:db8::1/128'],
    entryCount: 3,
  });
  t.deepEqual(await api.ok('GET', `/ip-lists/${list.id}`), list);
  const { entries, ...summary } = list;
  t.deepEqual(await api.ok('GET', '/ip-lists'), { items: [summary], total: 1 });
  for (const cluster of clusters) {
    t.like(await published(cluster, list.id), {
      name: 'office',
      listKind: IpListKind.ALLOW,
      entryCount: 3,
      cidrs: [...entries].sort(),
    });
    t.is((await api.reasons(cluster)).at(-1), 'rules_updated');
  }
  t.deepEqual(
    (await api.audit(list.id)).map(({ action }) => action),
    ['ip_list.create'],
  );
});

test.serial('a change answers the revision of every cluster', async (t) => {
  const answer = await api.call('POST', '/ip-lists', { name: 'followed', kind: 'block', entries: ['192.0.2.1'] });
  const revisions = await api.sql('cluster_head').select('cluster_id', 'revision');
  t.deepEqual(
    answer.headers.get('x-svc-change')?.split(',').sort(),
    revisions.map((row) => `${row.cluster_id}=${row.revision}`).sort(),
  );
});

test.serial('an update publishes only the chunks that changed', async (t) => {
  const before = addresses(500);
  const list = await create('many', 'block', before);
  t.true((await published(clusters[0]!, list.id)).chunks > 50);
  const added = '203.0.113.9/32';
  const after = await api.ok('PUT', `/ip-lists/${list.id}`, { kind: 'block', entries: [...before.slice(1), added] });
  t.is(after.entryCount, 500);
  t.true(Date.parse(after.updatedAt) > Date.parse(list.updatedAt));
  for (const cluster of clusters) {
    const { revision } = await api.sql('cluster_head').where({ cluster_id: cluster }).first();
    const touched = await api.sql('config_entry').where({ cluster_id: cluster, from_revision: revision });
    const expected = new Set([`${before[0]}/32`, added].map((cidr) => `${list.id}/${chunkOf(cidr)}`));
    t.deepEqual(touched.map((row) => row.resource_id).sort(), [...expected].sort());
    t.deepEqual((await published(cluster, list.id)).cidrs, [...after.entries].sort());
  }
});

test.serial('an update with nothing new writes nothing; another kind publishes the header', async (t) => {
  const list = await create('kinds', 'collection', ['192.0.2.1']);
  const reasons = await api.reasons(clusters[0]!);
  t.deepEqual(await api.ok('PUT', `/ip-lists/${list.id}`, { kind: 'collection', entries: ['192.0.2.1/32'] }), list);
  t.deepEqual(await api.reasons(clusters[0]!), reasons);
  t.is((await api.audit(list.id)).length, 1);
  const changed = await api.ok('PUT', `/ip-lists/${list.id}`, { kind: 'block', entries: ['192.0.2.1'] });
  t.is(changed.kind, 'block');
  t.is((await published(clusters[1]!, list.id)).listKind, IpListKind.BLOCK);
  t.is((await api.audit(list.id)).at(-1)!.action, 'ip_list.update');
});

test.serial('a deleted list is gone everywhere', async (t) => {
  const list = await create('gone', 'allow', addresses(100));
  const about = async () => (await api.ok('GET', `/clusters/${clusters[0]}/revisions`)).items[0].subject;
  t.deepEqual(await about(), { type: 'ip_list', id: list.id, name: 'gone', exists: true });
  await api.ok('DELETE', `/ip-lists/${list.id}`);
  t.deepEqual(await about(), { type: 'ip_list', id: list.id, name: 'gone', exists: false });
  await api.refused(t, [404, 'IP_LIST_NOT_FOUND'], 'GET', `/ip-lists/${list.id}`);
  await api.refused(t, [404, 'IP_LIST_NOT_FOUND'], 'DELETE', `/ip-lists/${list.id}`);
  const body = { kind: 'allow', entries: [] };
  await api.refused(t, [404, 'IP_LIST_NOT_FOUND'], 'PUT', `/ip-lists/${list.id}`, body);
  for (const cluster of clusters) {
    t.is(await published(cluster, list.id), undefined);
    t.deepEqual(
      (await api.entries(cluster, 'ip-list-chunk')).filter((id) => id.startsWith(list.id)),
      [],
    );
  }
  t.is((await api.audit(list.id)).at(-1)!.action, 'ip_list.delete');
});

test.serial('a new cluster has all lists from its first revision', async (t) => {
  const list = await create('early', 'block', addresses(200));
  const cluster = await api.cluster('late');
  t.is((await published(cluster, list.id)).cidrs.length, 200);
  t.deepEqual(await api.reasons(cluster), ['cluster_created']);
});

test.serial('a cluster that is deleted at the same moment is left out', async (t) => {
  const cluster = await api.cluster('leaving');
  let creating: Promise<Body>;
  await api.sql.transaction(async (trx) => {
    await trx('cluster').where({ id: cluster }).delete();
    creating = api.call('POST', '/ip-lists', { name: 'raced', kind: 'block', entries: ['192.0.2.1'] });
    await eventually(async () => {
      const { rows } = await api.sql.raw(
        `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%publish_request%'`,
      );
      return rows.length > 0;
    });
  });
  const { status, headers } = await creating!;
  t.is(status, 201);
  t.false(headers.get('x-svc-change').includes(cluster));
});

test.serial(
  'a publication that is left to do waits for the deletion of its cluster, not the deletion for it',
  async (t) => {
    const { runtime } = running.running;
    const cluster = await api.cluster('deleted-later');
    const { id } = await create('asked', 'block', ['192.0.2.1']);
    await write(runtime, systemCall('test'), {}, async (tx) => {
      await tx.sql('ip_list').where({ id }).update({ kind: 'collection' });
      await requestPublication(tx, { entries: [{ kind: 'ip-list', id }], reason: 'rules_updated' }, [cluster]);
    });
    let publishing: Promise<string[]>;
    await api.sql.transaction(async (trx) => {
      await trx('cluster').where({ id: cluster }).forUpdate().first();
      publishing = publishClusterRequests(runtime, systemCall('test'), cluster);
      await eventually(async () => (await trx.raw(WAITS_FOR_THIS_SESSION)).rows.length > 0);
      await trx('cluster').where({ id: cluster }).delete();
    });
    t.deepEqual(await publishing!, []);
  },
);

test.serial('names are checked and unique', async (t) => {
  await create('taken', 'allow', []);
  const data = await api.refused(t, [409, 'IP_LIST_NAME_TAKEN'], 'POST', '/ip-lists', {
    name: 'taken',
    kind: 'block',
    entries: [],
  });
  t.deepEqual(data, { name: 'taken' });
  for (const name of ['', '1a', 'a-b', 'a b', 'ä', 'a'.repeat(65)]) {
    await api.badField(t, '/name', 'POST', '/ip-lists', { name, kind: 'allow', entries: [] });
  }
  await create('a'.repeat(64), 'allow', []);
  await create('_', 'allow', []);
  await api.badField(t, '/kind', 'POST', '/ip-lists', { name: 'x', kind: 'deny', entries: [] });
  await api.badField(t, '/entries', 'POST', '/ip-lists', { name: 'x', kind: 'allow' });
  for (const bad of ['x', '::ffff:10.0.0.1/95'])
    await api.badField(t, '/entries/1', 'POST', '/ip-lists', { name: 'x', kind: 'allow', entries: ['10.0.0.1', bad] });
  await api.badField(t, '/name', 'PUT', '/ip-lists/x', { name: 'x', kind: 'allow', entries: [] });
});

test.serial('10,000 entries fit in a list, one more does not', async (t) => {
  const list = await create('large', 'block', addresses(10_000));
  t.is(list.entryCount, 10_000);
  t.is((await published(clusters[0]!, list.id)).cidrs.length, 10_000);
  const tooMany = { name: 'larger', kind: 'block', entries: addresses(10_001) };
  t.like(await api.refused(t, [409, 'IP_LIST_LIMIT'], 'POST', '/ip-lists', tooMany), { limit: 10_000, of: 'list' });
  const { name: _, ...update } = tooMany;
  t.like(await api.refused(t, [409, 'IP_LIST_LIMIT'], 'PUT', `/ip-lists/${list.id}`, update), { limit: 10_000 });
  // Duplicates count once.
  await create('doubles', 'block', [...addresses(9_000), ...addresses(9_000)]);
});

test.serial('50,000 entries in all, also when creates race', async (t) => {
  for (const name of ['a', 'b', 'c', 'd']) await create(name, 'collection', addresses(10_000));
  const bodies = Array.from({ length: 4 }, (_, n) => ({
    name: `race${n}`,
    kind: 'block',
    entries: addresses(4_000, n),
  }));
  const answers = await Promise.all(bodies.map((body) => api.call('POST', '/ip-lists', body)));
  t.deepEqual(answers.map(({ status }) => status).sort(), [201, 201, 409, 409]);
  for (const { body } of answers.filter(({ status }) => status === 409)) {
    t.is(body.code, 'IP_LIST_LIMIT');
    t.deepEqual(body.data, { limit: 50_000, of: 'entries' });
  }
});

test.serial('128 lists, not one more', async (t) => {
  await api.sql.raw(`insert into ip_list (name, kind) select 'n' || n, 'block' from generate_series(1, 127) n`);
  await create('last', 'block', []);
  const data = await api.refused(t, [409, 'IP_LIST_LIMIT'], 'POST', '/ip-lists', {
    name: 'more',
    kind: 'block',
    entries: [],
  });
  t.deepEqual(data, { limit: 128, of: 'lists' });
  const page = await api.ok('GET', '/ip-lists?pageSize=100&page=2');
  t.is(page.total, 128);
  t.is(page.items.length, 28);
});

test.serial('a stale view is refused', async (t) => {
  const list = await create('stale', 'block', []);
  const body = { kind: 'block', entries: ['10.0.0.1'], expectedUpdatedAt: '2020-01-01T00:00:00Z' };
  const data = await api.refused(t, [409, 'UPDATED_AT_MISMATCH'], 'PUT', `/ip-lists/${list.id}`, body);
  t.deepEqual(data, { updatedAt: list.updatedAt });
  await api.ok('PUT', `/ip-lists/${list.id}`, { ...body, expectedUpdatedAt: list.updatedAt });
});

const source = (kind: IpListUser['kind'], names: string[]): IpListUsers => {
  const users = names.map((name) => ({ kind, id: name, name, site: null }));
  return {
    count: async () => users.length,
    page: async (_sql, _id, limit, offset) => users.slice(offset, offset + limit),
  };
};

test.serial('users of a list are paged over all that can refer to it', async (t) => {
  const sources = [
    source('site_rule', ['a', 'b', 'c']),
    source('platform_rule', []),
    source('cache_rule', ['d']),
    source('l4_app', ['e', 'f', 'g']),
  ];
  const all = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
  for (let limit = 1; limit <= 8; limit++) {
    for (let offset = 0; offset <= 8; offset++) {
      const { items, total } = await usersOfIpList(api.sql, 'x', { limit, offset }, sources);
      t.is(total, 7);
      t.deepEqual(
        items.map(({ name }) => name),
        all.slice(offset, offset + limit),
        `${limit} from ${offset}`,
      );
    }
  }
});

test.serial('usage of a list that nothing refers to is empty, and it can be deleted', async (t) => {
  const { id } = await create('unused', 'allow', ['192.0.2.1']);
  t.deepEqual(await api.ok('GET', `/ip-lists/${id}/usage?pageSize=5`), { items: [], total: 0 });
  await api.badField(t, '/pageSize', 'GET', `/ip-lists/${id}/usage?pageSize=101`);
  await api.ok('DELETE', `/ip-lists/${id}`);
  await api.refused(t, [404, 'IP_LIST_NOT_FOUND'], 'GET', `/ip-lists/${id}/usage`);
});
