import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import { WatchEventSchema } from '../../../../../proto/gen/svc/node/v1/node_pb.js';
import { batchFrame, endFrame, eventFrame } from '../../../../../services/node-channel/watch/frames.ts';

function payload(frame: Buffer): Buffer {
  if (frame.readUInt32BE(1) !== frame.length - 5) throw new Error('the length is wrong');
  return frame.subarray(5);
}

test('frames written by hand are the encodings of the generated code, whatever their size', (t) => {
  for (const size of [0, 1, 127, 128, 16_383, 16_384, 300_000]) {
    const value = Buffer.alloc(size, 7);
    for (const event of ['banBatch', 'configDelta'] as const) {
      const encoded = toBinary(WatchEventSchema, create(WatchEventSchema, { event: { case: event, value } }));
      const frame = batchFrame(WatchEventSchema.field[event].number, value);
      t.true(payload(frame).equals(encoded), `${event} ${size}`);
    }
  }
});

test('an event frame carries the event', (t) => {
  const frame = eventFrame({ case: 'ping', value: { $typeName: 'svc.node.v1.Ping', serverTimeMs: 5n } });
  t.is(frame[0], 0);
  const { event } = fromBinary(WatchEventSchema, payload(frame));
  t.is(event.case === 'ping' && event.value.serverTimeMs, 5n);
});

test('the last frame carries the reason', (t) => {
  const frame = endFrame({ code: 'unavailable', message: 'stopping' });
  t.is(frame[0], 2);
  t.deepEqual(JSON.parse(payload(frame).toString()), { error: { code: 'unavailable', message: 'stopping' } });
  t.deepEqual(JSON.parse(payload(endFrame()).toString()), {});
});
