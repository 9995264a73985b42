// Connections that come and go while the hub prepares their cluster's feed.
import { PassThrough } from 'node:stream';
import test from 'ava';
import { WatchHub } from '../../services/node-channel/watch/watch-hub.ts';
import { addCluster, createPipeline, type Pipeline } from '../helpers/pipeline.ts';

let pipeline: Pipeline;
test.before(async () => {
  pipeline = await createPipeline();
});
test.after.always(() => pipeline?.close());

test('a node that goes away before its cluster was read leaves nothing behind', async (t) => {
  const clusterId = await addCluster(pipeline.runtime);
  const hub = new WatchHub(pipeline.runtime);
  t.teardown(() => hub.stop());
  const node = {
    nodeId: 'n',
    clusterId,
    serial: 's',
    certificateNotAfter: new Date(),
    name: 'n',
    principals: ['node' as const],
    status: 'active' as const,
    features: new Set<string>(),
  };
  const sink = new PassThrough();
  const opening = hub.open(node, sink, {});
  sink.destroy();
  const stream = await opening;
  t.is(hub.streamCount, 0);
  t.is((await hub.feed(clusterId))!.streams.size, 0);
  t.true(stream!.ended);
});
