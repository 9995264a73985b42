// Keys of TLS session tickets: their life in the database, and their way to the nodes.
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { SESSION_TICKET_KEYS } from '../../models/clusters/session-ticket-key.ts';
import { KeyKeeper } from '../../pipeline/key-keeper.ts';
import { WatchEventSchema } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { Runtime } from '../../runtime/runtime.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { connectAs, enrollOne } from '../helpers/fleet.ts';
import { Api, type Body } from '../helpers/resources.ts';

let running: TestConsole;
let api: Api;
let runtime: Runtime;
let clusters = 0;

test.before('start', async () => {
  running = await startTestConsole();
  api = new Api(running);
  runtime = running.running.runtime;
});
test.after.always('stop', () => running?.stop());

const HOUR = 3_600_000;
const never = new AbortController().signal;
const newCluster = () => api.cluster(`tickets-${clusters++}`);
const keysOf = (clusterId: string) => SESSION_TICKET_KEYS.read(runtime.pools.channel, runtime.sealer, clusterId);
const rotatePath = (clusterId: string) => `/clusters/${clusterId}/session-ticket-keys/rotate`;
const rotate = (clusterId: string): Promise<Body> => api.ok('POST', rotatePath(clusterId), {});

/** A node that says what it holds, online at `now`. */
async function newNode(clusterId: string, version: number, more: Body = {}, now = new Date()): Promise<string> {
  const { status = 'active', features = ['https-v1'], name = `n${version}`, ...state } = more;
  const id = await api.node(clusterId, name, { status, features });
  await api
    .sql('node_state')
    .where({ node_id: id })
    .update({ session_ticket_keys_version: version, last_seen_at: now, ...state });
  return id;
}

/** Runs the job as often as it takes, so many hours from now; answers the time. */
async function daily(hours: number, prepare: (now: Date) => Promise<unknown> = async () => undefined): Promise<void> {
  let now = Date.now() + hours * HOUR;
  let monotonic = 0;
  const clocks = { now: () => new Date(now), monotonic: () => monotonic };
  const keeper = new KeyKeeper({ name: 'session-ticket-keys', keys: SESSION_TICKET_KEYS }, clocks);
  for (let round = 0; round < 2; round++) {
    await prepare(new Date(now));
    await keeper.run(runtime, never);
    now += 61_000;
    monotonic += 61_000;
  }
}

test.serial('a new cluster has a current and a next key of 32 bytes, one of before gets some', async (t) => {
  const clusterId = await newCluster();
  const { version, keys } = await keysOf(clusterId);
  t.is(version, 1n);
  t.deepEqual(Object.keys(keys).sort(), ['current', 'next']);
  for (const { secret } of Object.values(keys)) t.is(secret.length, 32);
  t.notDeepEqual(keys.current!.secret, keys.next!.secret);
  await api.sql('session_ticket_key_set').where({ cluster_id: clusterId }).delete();
  t.is((await keysOf(clusterId)).version, 0n);
  await daily(0);
  t.is((await keysOf(clusterId)).version, 1n);
});

test.serial('roles move once a day, without a revision', async (t) => {
  const clusterId = await newCluster();
  const first = (await keysOf(clusterId)).keys;
  const { latestRevision } = await api.ok('GET', `/clusters/${clusterId}`);
  await daily(23.9);
  t.is((await keysOf(clusterId)).version, 1n);
  await daily(24);
  const second = await keysOf(clusterId);
  t.is(second.version, 2n);
  t.deepEqual([second.keys.current, second.keys.previous], [first.next, first.current]);
  t.is((await api.ok('GET', `/clusters/${clusterId}`)).latestRevision, latestRevision);
});

test.serial('every online node that speaks HTTPS has the next key before any uses it', async (t) => {
  const rows: readonly (readonly [string, number, Body, boolean])[] = [
    ['with the keys', 1, {}, true],
    ['with others', 7, {}, false],
    ['without any', 0, {}, false],
    ['that has no HTTPS', 0, { features: ['bans-v1'] }, true],
    ['that is offline', 0, { last_seen_at: new Date(0) }, true],
    ['that is disabled', 0, { status: 'disabled' }, true],
  ];
  for (const [name, version, more, rotates] of rows) {
    const clusterId = await newCluster();
    const id = await newNode(clusterId, version, { name, ...more });
    const online = more.last_seen_at === undefined;
    const seen = (now: Date) => api.sql('node_state').where({ node_id: id }).update({ last_seen_at: now });
    await daily(24.5, async (now) => (online ? seen(now) : undefined));
    t.is((await keysOf(clusterId)).version, rotates ? 2n : 1n, name);
    const other = await newCluster();
    const otherId = await newNode(other, version, { name, ...more });
    if (rotates) t.like(await rotate(other), { version: '2' }, name);
    else {
      const refused = await api.refused(t, [409, 'SESSION_TICKET_KEYS_NOT_HELD'], 'POST', rotatePath(other), {});
      t.deepEqual(refused, { nodes: [{ id: otherId, name }] });
      t.is((await keysOf(other)).version, 1n);
    }
  }
});

test.serial('a node that never takes keys is named, and holds a rotation up for an hour', async (t) => {
  const clusterId = await newCluster();
  const id = await newNode(clusterId, 0, { name: 'stubborn' });
  const other = await newNode(clusterId, 1, { name: 'other' });
  const seen = (now: Date) => api.sql('node_state').whereIn('node_id', [id, other]).update({ last_seen_at: now });
  const asked = async (cluster: string): Promise<Body> => {
    const { attention } = await api.ok('GET', `/overview?clusterId=${cluster}`);
    return attention.find(({ kind }: Body) => kind === 'session_ticket_keys_not_held');
  };
  t.is(await asked(clusterId), undefined, 'it has a while to fetch them');
  const rotatedAt = new Date(Date.now() - 11 * 60_000);
  await api.sql('session_ticket_key_set').where({ cluster_id: clusterId }).update({ rotated_at: rotatedAt });
  await eventually(async () => (await asked(clusterId)) !== undefined);
  t.like(await asked(clusterId), {
    clusterId,
    count: 1,
    level: 'watch',
    at: rotatedAt.toISOString(),
    named: [{ type: 'node', id, name: 'stubborn', reason: null }],
  });
  t.is(await asked(await newCluster()), undefined);
  await daily(24.5, seen);
  t.is((await keysOf(clusterId)).version, 1n);
  await daily(25, seen);
  t.is((await keysOf(clusterId)).version, 2n);
});

test.serial(
  'a rotation by hand is audited, says no key, and lets nothing of the keys remain after three',
  async (t) => {
    const clusterId = await newCluster();
    const before = await keysOf(clusterId);
    const { version, rotatedAt } = await rotate(clusterId);
    t.is(version, '2');
    t.false(Number.isNaN(Date.parse(rotatedAt)));
    const audit = (await api.audit(clusterId)).at(-1)!;
    t.is(audit.action, 'cluster.session_ticket_keys_rotate');
    t.deepEqual(audit.metadata, { version: '2' });
    await rotate(clusterId);
    await rotate(clusterId);
    const left = Object.values((await keysOf(clusterId)).keys).map(({ id }) => id);
    for (const { id } of Object.values(before.keys)) t.false(left.includes(id));
    await api.refused(t, [404, 'CLUSTER_NOT_FOUND'], 'POST', rotatePath('nobody'), {});
  },
);

test.serial('two rotations at the same moment are two', async (t) => {
  const clusterId = await newCluster();
  const answers = await Promise.all([rotate(clusterId), rotate(clusterId)]);
  t.deepEqual(answers.map(({ version }) => version).sort(), ['2', '3']);
  t.deepEqual(Object.keys((await keysOf(clusterId)).keys).sort(), ['current', 'next', 'previous']);
});

test.serial('a node gets the keys over the channel, says which it has, and is told of others', async (t) => {
  const clusterId = await newCluster();
  const identity = await enrollOne(running, clusterId, ['https-v1']);
  const connection = connectAs(running, identity);
  t.teardown(() => connection.destroy());
  const beat = (version: bigint) =>
    connection.call('heartbeat', { info: { features: ['https-v1'] }, sessionTicketKeysVersion: version });
  t.is((await beat(0n)).sessionTicketKeysVersion, 1n);
  const { keys } = await connection.call('getSessionTicketKeys', {});
  const stored = await keysOf(clusterId);
  t.is(keys!.version, 1n);
  t.deepEqual(
    [keys!.next, keys!.current, keys!.previous].map((secret) => Buffer.from(secret)),
    [stored.keys.next!.secret, stored.keys.current!.secret, Buffer.alloc(0)],
  );
  const told: string[] = [];
  const stream = connection.watch(
    {},
    (frame) => {
      const { event } = fromBinary(WatchEventSchema, frame);
      if (event.case === 'target') told.push('target');
      if (event.case === 'keysChanged') told.push(`${event.value.version} ${event.value.sessionTicketVersion}`);
    },
    () => undefined,
  );
  t.teardown(() => stream.destroy());
  await eventually(() => told.length > 0);
  const said = (version: string) =>
    eventually(async () => {
      const state = await api.sql('node_state').where({ node_id: identity.nodeId }).first();
      return state.last_seen_at !== null && state.session_ticket_keys_version === version;
    });
  await said('0');
  await api.refused(t, [409, 'SESSION_TICKET_KEYS_NOT_HELD'], 'POST', rotatePath(clusterId), {});
  await beat(1n);
  await said('1');
  t.is((await rotate(clusterId)).version, '2');
  await eventually(() => told.length > 1);
  t.deepEqual(told, ['target', '0 2']);
  const next = (await connection.call('getSessionTicketKeys', {})).keys!;
  t.is(next.version, 2n);
  t.deepEqual([next.current, next.previous], [keys!.next, keys!.current]);
  t.is((await beat(2n)).sessionTicketKeysVersion, 2n);
});

test.serial('secrets are in no audit entry, revision, entry or outbox row, and lie sealed', async (t) => {
  const clusterId = await newCluster();
  await rotate(clusterId);
  const { rows } = await api.sql.raw<{ rows: { row: string }[] }>(`
    select t::text as row from config_blob t union all select t::text from config_revision t
    union all select t::text from audit_entry t union all select t::text from outbox t
    union all select t::text from session_ticket_key t`);
  const texts = rows.map(({ row }) => row).join('\n');
  for (const { secret } of Object.values((await keysOf(clusterId)).keys)) {
    for (const encoding of ['hex', 'base64', 'base64url'] as const) t.false(texts.includes(secret.toString(encoding)));
  }
});
