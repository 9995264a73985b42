// Places of nodes in feeds by name: stored beside those of the older feeds, and told per node.
import test from 'ava';
import { nodesInFeed, writePositions } from '../../models/nodes/node-position.ts';
import { type FeedRows, namedFeed } from '../../pipeline/named-feed.ts';
import { discoverFeeds } from '../../services/discover.ts';
import { addCluster, createPipeline } from '../helpers/pipeline.ts';

const madeUp = namedFeed({
  name: 'made-up',
  topic: 'made-up',
  ownerLock: 0x535601ff,
  hint: 'revisions',
  changes: null,
  rows: () => ({}) as FeedRows,
});

test('places in feeds by name are stored with those of the older feeds, told by node, and end with the node', async (t) => {
  const { runtime, close } = await createPipeline();
  try {
    const clusterId = await addCluster(runtime);
    const sql = runtime.pools.api;
    await sql('node_group').insert({ id: 'group', cluster_id: clusterId, name: 'group' });
    for (const id of ['a', 'b', 'c']) {
      await sql('node').insert({ id, cluster_id: clusterId, node_group_id: 'group', name: id });
      await sql('node_state')
        .insert({ node_id: id, features: id === 'c' ? [] : ['feeds-v1'], last_seen_at: sql.fn.now() })
        .onConflict('node_id')
        .merge();
    }
    const { epoch } = (await sql('console_state').first('epoch')) as { epoch: string };
    const feeds = [...(await discoverFeeds()).filter(({ wire }) => wire.aim !== null), madeUp];
    const at = new Date('2026-01-02T03:04:05Z');
    const place = (sequence: bigint) => ({ at, epoch: BigInt(epoch), sequence });
    const write = (nodeId: string, made: bigint, bans: bigint) => {
      const places = new Map([
        ['made-up', place(made)],
        ['bans', place(bans)],
      ]);
      return writePositions(runtime.pools.channel, feeds, [{ nodeId, at, config: undefined, places }]);
    };
    t.true(await write('a', 7n, 3n));
    t.true(await write('b', 6n, 3n));
    t.false(await write('b', 6n, 3n), 'nothing moved');
    t.false(await write('gone', 6n, 3n));
    t.like(await sql('node_state').where({ node_id: 'a' }).first(), { ban_sequence: '3', bans_applied_at: at });
    const hints = (await sql('outbox').where({ topic: 'live' }).pluck('key')) as string[];
    t.true(
      hints.includes('nodes a') && hints.includes(`bans ${clusterId}`) && hints.includes(`revisions ${clusterId}`),
    );

    const told = async (sequence: bigint, of = BigInt(epoch)) =>
      (await nodesInFeed(sql, madeUp, clusterId, { epoch: of, sequence })).map(({ nodeId, able, online, reached }) =>
        [nodeId, able && 'able', online && 'online', reached && 'reached'].filter(Boolean).join(' '),
      );
    t.deepEqual(await told(7n), ['a able online reached', 'b able online', 'c online']);
    t.deepEqual(await told(9n, BigInt(epoch) - 1n), ['a able online reached', 'b able online reached', 'c online']);
    const [first] = await nodesInFeed(sql, madeUp, clusterId, { epoch: BigInt(epoch), sequence: 1n });
    t.like(first, { name: 'a', place: { epoch: BigInt(epoch), sequence: 7n }, reachedAt: at });

    await sql('node').where({ id: 'a' }).delete();
    t.is((await sql('node_feed')).length, 1);
  } finally {
    await close();
  }
});
