import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import fc from 'fast-check';
import { parseEntry } from '../../../../agents/edge/config/entry.ts';
import {
  decodeHeader,
  encodeConfigRecord,
  encodeHeader,
  readConfigRecord,
} from '../../../../agents/edge/config/record.ts';
import { EntryKeySchema, EntrySchema } from '../../../../proto/gen/svc/config/v1/entry_pb.js';
import { JournalRecordSchema } from '../../../../proto/gen/svc/edge/v1/edge_pb.js';
import { ConfigPositionSchema, Track } from '../../../../proto/gen/svc/node/v1/config_pb.js';

const position = create(ConfigPositionSchema, {
  epoch: 2n ** 40n,
  track: Track.STABLE,
  revision: 300n,
  setHash: Buffer.alloc(32, 7),
});

test('the header says format, node and cluster', (t) => {
  const header = decodeHeader(encodeHeader('node-1', 'cluster-1'))!;
  t.deepEqual([header.format, header.nodeId, header.clusterId], [1, 'node-1', 'cluster-1']);
  t.is(decodeHeader(encodeConfigRecord(position, [], []).payload), undefined);
  t.is(decodeHeader(Buffer.from('no protobuf')), undefined);
});

test('property: a record built by hand is the record of the contract, and its entries are where it says', (t) => {
  const entry = fc.record({
    kind: fc.constantFrom('site', 'client-ip'),
    id: fc.string({ unit: 'grapheme', maxLength: 40 }),
    body: fc.uint8Array({ maxLength: 400 }),
    features: fc.array(fc.constantFrom('a-v1', 'b-v2'), { maxLength: 2 }),
  });
  fc.assert(
    fc.property(
      fc.array(entry, { maxLength: 6 }),
      fc.array(fc.string({ maxLength: 200 }), { maxLength: 3 }),
      fc.boolean(),
      (entries, deleted, positioned) => {
        const upserts = entries.map((fields) => create(EntrySchema, fields));
        const deletes = deleted.map((id) => create(EntryKeySchema, { kind: 'site', id }));
        const encoded = upserts.map((message) => toBinary(EntrySchema, message));
        const { payload, places } = encodeConfigRecord(positioned ? position : undefined, encoded, deletes);
        const { record } = fromBinary(JournalRecordSchema, payload);
        if (record.case !== 'config') return false;
        const again = toBinary(
          JournalRecordSchema,
          create(JournalRecordSchema, {
            record: { case: 'config', value: { ...record.value, upserts, deletes } },
          }),
        );
        if (fromBinary(JournalRecordSchema, again).record.case !== 'config' || again.length !== payload.length)
          return false;
        if (record.value.upserts.length !== upserts.length || record.value.deletes.length !== deletes.length)
          return false;
        if ((record.value.position !== undefined) !== positioned) return false;
        const seen: string[] = [];
        readConfigRecord(payload, {
          upsert: (start, end) => {
            const parsed = parseEntry(payload, start, end);
            seen.push(`+${parsed.kind}/${parsed.id}/${parsed.body.toString('hex')}/${parsed.features}`);
          },
          remove: (key) => seen.push(`-${key.id}`),
          position: () => seen.push('@'),
        });
        const expected = [
          ...upserts.map(
            (item) => `+${item.kind}/${item.id}/${Buffer.from(item.body).toString('hex')}/${item.features}`,
          ),
          ...deletes.map((key) => `-${key.id}`),
          ...(positioned ? ['@'] : []),
        ];
        const found = places.every(
          ({ start, end }, index) => Buffer.compare(payload.subarray(start, end), encoded[index]!) === 0,
        );
        return found && JSON.stringify(seen) === JSON.stringify(expected);
      },
    ),
  );
  t.pass();
});

test('property: bytes that are no record are refused, never read beyond their end', (t) => {
  const ignore = { upsert: () => undefined, remove: () => undefined, position: () => undefined };
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      try {
        readConfigRecord(Buffer.from(bytes), ignore);
      } catch (error) {
        return error instanceof Error;
      }
      return true;
    }),
    { numRuns: 2000 },
  );
  const { payload } = encodeConfigRecord(
    position,
    [toBinary(EntrySchema, create(EntrySchema, { kind: 'site', id: 'a' }))],
    [],
  );
  for (let length = 1; length < payload.length; length++) {
    t.throws(() => readConfigRecord(payload.subarray(0, length), ignore), undefined, `cut at ${length}`);
  }
});
