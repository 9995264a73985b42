// Keys that sign passes: their life in the database, and their way to the nodes.
import { fromBinary } from '@bufbuild/protobuf';
import test from 'ava';
import fc from 'fast-check';
import { CHALLENGE_KEYS } from '../../models/clusters/challenge-key.ts';
import { KeyKeeper } from '../../pipeline/key-keeper.ts';
import { WatchEventSchema } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { Runtime } from '../../runtime/runtime.ts';
import { CHALLENGES } from '../../services/protection/challenge-keys.ts';
import { startTestConsole, startTestConsoleProcess, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { connectAs, enrollOne } from '../helpers/fleet.ts';
import { Api } from '../helpers/resources.ts';

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

const never = new AbortController().signal;
const HOUR = 3_600_000;
const MINUTE = 60_000;

const newCluster = () => api.cluster(`keys-${clusters++}`);
const keysOf = (clusterId: string) => CHALLENGE_KEYS.read(runtime.pools.channel, runtime.sealer, clusterId);
const idsOf = async (clusterId: string) => {
  const { version, keys } = await keysOf(clusterId);
  return { version, next: keys.next?.id, current: keys.current?.id, previous: keys.previous?.id };
};

/** The job with clocks that the test moves: `pass` lets time pass, `step` moves the wall clock only. */
function newKeeper() {
  let wall = Date.now();
  let monotonic = 0;
  const keeper = new KeyKeeper(CHALLENGES, { now: () => new Date(wall), monotonic: () => monotonic });
  const pass = (ms: number) => {
    wall += ms;
    monotonic += ms;
  };
  return {
    now: () => new Date(wall),
    pass,
    step(ms: number) {
      wall += ms;
    },
    run: () => keeper.run(runtime, never),
    /** Long enough for whatever is due to be done. */
    async settle() {
      await keeper.run(runtime, never);
      pass(MINUTE);
      await keeper.run(runtime, never);
    },
  };
}

test.serial('a new cluster has a current and a next key of 32 bytes', async (t) => {
  const { version, keys } = await keysOf(await newCluster());
  t.is(version, 1n);
  t.deepEqual(Object.keys(keys).sort(), ['current', 'next']);
  for (const key of [keys.current!, keys.next!]) {
    t.regex(key.id, /^[A-Za-z0-9_-]{1,32}$/);
    t.is(key.secret.length, 32);
  }
  t.notDeepEqual(keys.current, keys.next);
});

test.serial('a cluster without keys gets some from the job, once', async (t) => {
  const clusterId = await newCluster();
  await api.sql('challenge_key_set').where({ cluster_id: clusterId }).delete();
  t.like(await idsOf(clusterId), { version: 0n });
  const keeper = newKeeper();
  await keeper.run();
  const made = await idsOf(clusterId);
  t.is(made.version, 1n);
  await keeper.run();
  t.deepEqual(await idsOf(clusterId), made);
});

test.serial('roles move next, current, previous, under a revision of their own', async (t) => {
  const clusterId = await newCluster();
  const keeper = newKeeper();
  const first = await idsOf(clusterId);
  const secrets = await keysOf(clusterId);
  keeper.pass(24 * HOUR + 9 * MINUTE);
  await keeper.settle();
  t.deepEqual(await idsOf(clusterId), first, 'not yet');
  keeper.pass(MINUTE);
  await keeper.settle();
  const second = await idsOf(clusterId);
  t.like(second, { version: 2n, current: first.next!, previous: first.current! });
  t.false([first.next, first.current].includes(second.next!));
  const { keys } = await keysOf(clusterId);
  t.deepEqual(keys.current, secrets.keys.next);
  t.deepEqual(keys.previous, secrets.keys.current);
  t.is((await api.reasons(clusterId)).at(-1), 'challenge_keys_rotated');
  t.deepEqual(await api.entries(clusterId, 'challenge-keys'), ['']);
  t.deepEqual(
    (await api.audit(clusterId)).map(({ action }) => action),
    ['cluster.create'],
  );
});

test.serial('what was missed is not caught up with', async (t) => {
  const clusterId = await newCluster();
  const keeper = newKeeper();
  keeper.pass(10 * 24 * HOUR);
  for (let round = 0; round < 3; round++) await keeper.settle();
  t.is((await idsOf(clusterId)).version, 2n);
  keeper.pass(24 * HOUR);
  await keeper.settle();
  t.is((await idsOf(clusterId)).version, 2n);
  keeper.pass(10 * MINUTE);
  await keeper.settle();
  t.is((await idsOf(clusterId)).version, 3n);
});

test.serial('two processes at the same moment rotate once', async (t) => {
  const clusterId = await newCluster();
  const keepers = [newKeeper(), newKeeper()];
  for (const keeper of keepers) keeper.pass(25 * HOUR);
  await Promise.all(keepers.map((keeper) => keeper.settle()));
  t.is((await idsOf(clusterId)).version, 2n);
});

test.serial('only online nodes that hold keys are waited for', async (t) => {
  const rows: readonly (readonly [string, { version: number; secondsAgo: number; status?: 'disabled' }, boolean])[] = [
    ['online with the keys', { version: 1, secondsAgo: 5 }, true],
    ['online with others', { version: 7, secondsAgo: 5 }, false],
    ['online without any', { version: 0, secondsAgo: 5 }, true],
    ['offline with others', { version: 7, secondsAgo: 60 }, true],
    ['disabled with others', { version: 7, secondsAgo: 5, status: 'disabled' }, true],
  ];
  for (const [what, { version, secondsAgo, status = 'active' }, rotates] of rows) {
    const clusterId = await newCluster();
    const nodeId = await api.node(clusterId, 'n', { status });
    const keeper = newKeeper();
    keeper.pass(25 * HOUR);
    await keeper.run();
    keeper.pass(MINUTE);
    await api
      .sql('node_state')
      .where({ node_id: nodeId })
      .update({
        challenge_keys_version: version,
        last_seen_at: new Date(keeper.now().getTime() - secondsAgo * 1000),
      });
    await keeper.run();
    t.is((await idsOf(clusterId)).version, rotates ? 2n : 1n, what);
  }
});

test.serial('a clock that is set back begins the wait anew', async (t) => {
  const clusterId = await newCluster();
  const keeper = newKeeper();
  keeper.step(-30 * 24 * HOUR);
  await keeper.settle();
  keeper.pass(24 * HOUR);
  await keeper.settle();
  t.is((await idsOf(clusterId)).version, 1n);
  keeper.pass(10 * MINUTE);
  await keeper.settle();
  t.is((await idsOf(clusterId)).version, 2n);
});

interface ModelKeys {
  version: bigint;
  next: string | undefined;
  current: string | undefined;
  previous: string | undefined;
}
/** A node as far as keys go: it reports every 15 s while it is online, and fetches when the answer names others. */
interface KeyNode {
  id: string;
  online: boolean;
  keys: ModelKeys;
}
type Step =
  | { kind: 'step'; hours: number }
  | { kind: 'hours'; hours: number }
  | { kind: 'beats'; fetching: readonly boolean[] }
  | { kind: 'toggle'; node: number };

const NODES = 3;
const step = fc.oneof(
  fc.record({ kind: fc.constant('step' as const), hours: fc.integer({ min: -60, max: 60 }) }),
  fc.record({ kind: fc.constant('hours' as const), hours: fc.constantFrom(1, 12, 25) }),
  fc.record({
    kind: fc.constant('beats' as const),
    fetching: fc.array(fc.boolean(), { minLength: NODES, maxLength: NODES }),
  }),
  fc.record({ kind: fc.constant('toggle' as const), node: fc.nat(NODES - 1) }),
);

test.serial('whatever clocks, nodes and networks do, each online node accepts what each other signs', async (t) => {
  let rotations = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (history: Step[]) => {
      const clusterId = await newCluster();
      const keeper = newKeeper();
      const fetched = () => idsOf(clusterId);
      const nodes: KeyNode[] = [];
      for (let count = 0; count < NODES; count++) {
        nodes.push({ id: await api.node(clusterId, `n${count}`), online: true, keys: await fetched() });
      }
      const beat = async (fetching: readonly boolean[]) => {
        for (const [index, node] of nodes.entries()) {
          if (!node.online) continue;
          await api
            .sql('node_state')
            .where({ node_id: node.id })
            .update({ challenge_keys_version: String(node.keys.version), last_seen_at: keeper.now() });
          if (fetching[index]) node.keys = await fetched();
        }
      };
      const check = () => {
        const online = nodes.filter(({ online: is }) => is).map(({ keys }) => keys);
        for (const signer of online) {
          for (const { next, current, previous } of online) {
            t.true([next, current, previous].includes(signer.current), JSON.stringify(history));
          }
        }
      };
      for (const action of history) {
        const all = action.kind === 'beats' ? action.fetching : nodes.map(() => false);
        if (action.kind === 'step') keeper.step(action.hours * HOUR);
        // Neither node nor job does anything in the meantime: the console, or its database, was away.
        if (action.kind === 'hours') keeper.pass(action.hours * HOUR);
        if (action.kind === 'toggle') {
          const node = nodes[action.node]!;
          node.online = !node.online;
          // Before it takes visitors, a node that was away asks.
          if (node.online) node.keys = await fetched();
        }
        // The job may look at once, before any node was heard again.
        await keeper.run();
        check();
        for (let count = 0; count < 3; count++) {
          keeper.pass(30_000);
          await beat(all);
          check();
          await keeper.run();
          check();
        }
      }
      rotations += Number((await idsOf(clusterId)).version) - 1;
    }),
    { numRuns: 25, endOnFailure: true },
  );
  // How many there are is up to the histories; without any, nothing was shown.
  t.true(rotations > 5, `${rotations} rotations`);
});

test.serial('a node gets its keys over the channel, and is told of others at once', async (t) => {
  const clusterId = await newCluster();
  const identity = await enrollOne(running, clusterId, ['challenge-v1']);
  const connection = connectAs(running, identity);
  t.teardown(() => connection.destroy());
  const answer = await connection.call('heartbeat', { info: { features: ['challenge-v1'] } });
  t.is(answer.challengeKeysVersion, 1n);
  const { keys } = await connection.call('getChallengeKeys', {});
  const stored = await keysOf(clusterId);
  t.is(keys!.version, 1n);
  t.is(keys!.previous, undefined);
  t.deepEqual(
    [keys!.current!.id, Buffer.from(keys!.current!.secret)],
    [stored.keys.current!.id, stored.keys.current!.secret],
  );
  const told: bigint[] = [];
  const stream = connection.watch(
    {},
    (frame) => {
      const { event } = fromBinary(WatchEventSchema, frame);
      if (event.case === 'target') told.push(0n);
      if (event.case === 'keysChanged') told.push(event.value.version);
    },
    () => undefined,
  );
  t.teardown(() => stream.destroy());
  await eventually(() => told.length > 0);
  await connection.call('heartbeat', { challengeKeysVersion: 1n, info: { features: ['challenge-v1'] } });
  await eventually(async () => {
    const row = await api.sql('node_state').where({ node_id: identity.nodeId }).first('challenge_keys_version');
    return row.challenge_keys_version === '1';
  });
  await api
    .sql('challenge_key_set')
    .where({ cluster_id: clusterId })
    .update({ rotated_at: new Date(Date.now() - 25 * HOUR) });
  await newKeeper().settle();
  await eventually(() => told.includes(2n));
  const next = (await connection.call('getChallengeKeys', {})).keys!;
  t.deepEqual([next.version, next.current!.id, next.previous!.id], [2n, keys!.next!.id, keys!.current!.id]);
  t.is((await connection.call('heartbeat', {})).challengeKeysVersion, 2n);
});

test.serial('secrets are in no entry, revision, audit entry or outbox row', async (t) => {
  const clusterId = await newCluster();
  const keeper = newKeeper();
  keeper.pass(25 * HOUR);
  await keeper.settle();
  const { keys } = await keysOf(clusterId);
  const { rows } = await api.sql.raw<{ rows: { row: string }[] }>(`
    select t::text as row from config_blob t union all select t::text from config_revision t
    union all select t::text from config_settings t union all select t::text from config_entry t union all select t::text from audit_entry t
    union all select t::text from outbox t union all select t::text from challenge_key t`);
  const dump = rows.map(({ row }) => row).join('\n');
  t.true(dump.includes(clusterId));
  for (const { id, secret } of Object.values(keys)) {
    t.true(dump.includes(id));
    for (const encoding of ['hex', 'base64', 'base64url'] as const) t.false(dump.includes(secret.toString(encoding)));
  }
});

test.serial('a console that gives keys to a node, and then refuses it, logs none of them', async (t) => {
  const other = await startTestConsoleProcess({ env: { LOG_LEVEL: 'trace' } });
  t.teardown(() => other.stop());
  const { items } = await other.client.api<{ items: { id: string }[] }>('GET', '/clusters');
  const identity = await enrollOne(other, items[0]!.id);
  const connection = connectAs(other, identity);
  t.teardown(() => connection.destroy());
  const { keys } = await connection.call('getChallengeKeys', {});
  await other.client.api('DELETE', `/nodes/${identity.nodeId}`);
  await eventually(() =>
    connection.call('getChallengeKeys', {}).then(
      () => false,
      () => true,
    ),
  );
  const log = other.log();
  t.true(log.includes(identity.nodeId));
  for (const { id, secret } of [keys!.current!, keys!.next!]) {
    t.false(log.includes(id));
    for (const encoding of ['hex', 'base64', 'base64url'] as const) {
      t.false(log.includes(Buffer.from(secret).toString(encoding)));
    }
  }
});
