// The decoder of batches against the general one.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import test from 'ava';
import fc from 'fast-check';
import { ReportStatsRequestSchema } from '../../../../proto/gen/svc/node/v1/node_pb.js';
import { type CodedReport, decodeReportStats } from '../../../../services/node-channel/decode-stats.ts';

const unsigned = fc.oneof(fc.nat({ max: 300 }).map(BigInt), fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }));
const signed = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const minute = fc.record({
  siteId: fc.string({ unit: 'grapheme' }),
  minute: signed,
  requests: unsigned,
  bytesSent: unsigned,
  bytesReceived: unsigned,
  cacheHits: unsigned,
  cacheMisses: unsigned,
  cacheHitBytes: unsigned,
  statuses: fc.array(fc.record({ code: fc.nat({ max: 2 ** 32 - 1 }), count: unsigned }), { maxLength: 4 }),
  counts: fc.array(fc.record({ name: fc.string({ unit: 'grapheme' }), count: unsigned }), { maxLength: 4 }),
  latency: fc.array(unsigned, { maxLength: 24 }),
  rules: fc.array(
    fc.record({
      ruleId: fc.string({ unit: 'grapheme' }),
      platform: fc.boolean(),
      event: fc.nat({ max: 9 }),
      count: unsigned,
    }),
    { maxLength: 4 },
  ),
  tops: fc.array(
    fc.record({
      list: fc.nat({ max: 9 }),
      key: fc.string({ unit: 'grapheme' }),
      requests: unsigned,
      bytesSent: unsigned,
    }),
    { maxLength: 4 },
  ),
});
const requests = fc.record({
  sequence: unsigned,
  minutes: fc.array(minute, { maxLength: 5 }),
  completeUntil: signed,
  gaps: fc.array(fc.record({ from: signed, to: signed }), { maxLength: 3 }),
  firstHeld: unsigned,
});
const encode = (request: object) => toBinary(ReportStatsRequestSchema, create(ReportStatsRequestSchema, request));
/** What the general decoder read, in the form of the other: rounded, and negative times far ahead. */
function general(bytes: Uint8Array) {
  const { sequence, firstHeld, completeUntil, gaps, minutes } = fromBinary(ReportStatsRequestSchema, bytes);
  const time = (value: bigint) => Number(BigInt.asUintN(64, value));
  return {
    sequence,
    firstHeld,
    completeUntil: time(completeUntil),
    gaps: gaps.map(({ from, to }) => ({ from: time(from), to: time(to) })),
    minutes: minutes.map((row) => ({
      siteId: row.siteId,
      minute: time(row.minute),
      requests: Number(row.requests),
      bytesSent: Number(row.bytesSent),
      bytesReceived: Number(row.bytesReceived),
      cacheHits: Number(row.cacheHits),
      cacheMisses: Number(row.cacheMisses),
      cacheHitBytes: Number(row.cacheHitBytes),
      statuses: row.statuses.flatMap(({ code, count }) => [code, Number(count)]),
      names: row.counts.map(({ name }) => name),
      counts: row.counts.map(({ count }) => Number(count)),
      latency: row.latency.map(Number),
      rules: row.rules.map(({ ruleId, platform, event, count }) => ({ ruleId, platform, event, count: Number(count) })),
      tops: row.tops.map(({ list, key, requests, bytesSent }) => ({
        list,
        key,
        requests: Number(requests),
        bytesSent: Number(bytesSent),
      })),
    })),
  };
}
/** What is in one piece for all rows, in each of them. */
function spread({ numbers, minutes, ...report }: CodedReport) {
  return {
    ...report,
    minutes: minutes.map(({ at, statuses, names, latency, rules, tops, ...row }) => {
      const counts = at + 2 * statuses;
      const buckets = counts + names.length;
      return {
        ...row,
        statuses: [...numbers.subarray(at, counts)],
        names,
        counts: [...numbers.subarray(counts, buckets)],
        latency: [...numbers.subarray(buckets, buckets + latency)],
        rules,
        tops,
      };
    }),
  };
}
const shown = (report: object) =>
  JSON.stringify(report, (_name, value) => (typeof value === 'bigint' ? `${value}` : value));

test('what an agent encodes is read as the general decoder reads it', (t) => {
  fc.assert(
    fc.property(requests, (request) => {
      const bytes = encode(request);
      return shown(spread(decodeReportStats(bytes))) === shown(general(bytes));
    }),
    {
      numRuns: 300,
      examples: [
        // Which is another number when it is rounded twice.
        [
          {
            sequence: 0n,
            minutes: [
              {
                siteId: '',
                minute: 0n,
                requests: 0n,
                bytesSent: 11353819937549998972n,
                bytesReceived: 0n,
                ...{ cacheHits: 0n, cacheMisses: 0n, cacheHitBytes: 0n },
                statuses: [],
                counts: [],
                latency: [],
                rules: [],
                tops: [],
              },
            ],
            completeUntil: 0n,
            gaps: [],
            firstHeld: 0n,
          },
        ],
      ],
    },
  );
  t.pass();
});

test('fields that are not known are skipped, and numbers may come one by one', (t) => {
  const known = encode({ sequence: 7n });
  // Field 15 as a number, 64 bits, bytes and 32 bits.
  const unknown = [0x78, 0x96, 0x01, 0x79, 1, 2, 3, 4, 5, 6, 7, 8, 0x7a, 2, 1, 2, 0x7d, 1, 2, 3, 4];
  const single = [0x12, 4, 0x40, 5, 0x40, 6];
  const request = decodeReportStats(Buffer.from([...unknown, ...known, ...single]));
  t.is(request.sequence, 7n);
  t.deepEqual(spread(request).minutes[0]!.latency, [5, 6]);
});

test('damaged bytes end in an answer or an error, never beyond their end', (t) => {
  fc.assert(
    fc.property(requests, fc.nat(), fc.nat({ max: 255 }), fc.nat(), (request, at, value, cut) => {
      const bytes = encode(request);
      if (bytes.length === 0) return true;
      bytes[at % bytes.length] = value;
      try {
        decodeReportStats(bytes.subarray(0, cut % (bytes.length + 1)));
      } catch (error) {
        return error instanceof RangeError;
      }
      return true;
    }),
    { numRuns: 500 },
  );
  t.pass();
});
