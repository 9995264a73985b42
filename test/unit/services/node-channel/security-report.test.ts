// Whatever a node says, what is stored of it stays within bounds and can be stored.
import { create } from '@bufbuild/protobuf';
import test from 'ava';
import fc from 'fast-check';
import { ReportSecurityRequestSchema } from '../../../../proto/gen/svc/node/v1/security_pb.js';
import { readSecurityReport } from '../../../../services/node-channel/security-report.ts';

const NOW = new Date('2026-11-21T12:00:00Z');
const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 100 }),
  fc.constantFrom('', 'a', '/', '\0', '\ud800', '10.0.0.1', '::1', '2001:db8::/64', `/${'x'.repeat(3000)}`),
);
const id = fc.oneof(anyText, fc.constantFrom('boot-1', 'boot-2', 'site'));
const bigint = (max: bigint) => fc.bigInt({ min: 0n, max });
const level = fc.oneof(fc.nat(6), fc.constant(2 ** 32 - 1));
const heavy = fc.array(fc.record({ value: anyText, count: bigint(2n ** 64n - 1n) }), { maxLength: 15 });
const event = fc.record({
  id,
  siteId: id,
  kind: fc.integer({ min: 0, max: 5 }),
  occurredAtMs: fc.oneof(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.constant(BigInt(NOW.getTime()))),
  level,
  previousLevel: level,
  path: anyText,
  address: anyText,
  metric: anyText,
  observed: fc.double(),
  threshold: fc.double(),
  topIps: heavy,
  topPaths: heavy,
});
const site = fc.record({
  siteId: id,
  level,
  paths: fc.array(fc.record({ path: anyText, level }), { maxLength: 80 }),
});
const request = fc.record({
  events: fc.array(event, { maxLength: 20 }),
  sites: fc.array(site, { maxLength: 20 }),
  hasState: fc.boolean(),
  dropped: bigint(2n ** 64n - 1n),
});

test('any report is read into something bounded that PostgreSQL takes', (t) => {
  let read = 0;
  fc.assert(
    fc.property(request, (message) => {
      const report = readSecurityReport(create(ReportSecurityRequestSchema, message), NOW);
      const text = JSON.stringify(report, (_key, value) => (typeof value === 'bigint' ? String(value) : value));
      t.true(text.isWellFormed());
      t.false(text.includes('\\u0000'));
      t.false(/\\ud[89a-f]/i.test(text));
      t.is(report.sites === null, !message.hasState);
      t.true(report.dropped < 2n ** 63n);
      for (const { occurredAt, level: to, previousLevel, path, topIps, topPaths, observed } of report.events) {
        read++;
        t.true(occurredAt <= NOW && occurredAt.getTime() > NOW.getTime() - 366 * 86_400_000);
        t.true(to <= 4 && previousLevel <= 4);
        t.true((path?.length ?? 0) <= 2048);
        t.true(topIps.length <= 10 && topPaths.length <= 10);
        t.true(observed === null || Number.isFinite(observed));
      }
      for (const { level: at, paths } of report.sites ?? []) {
        t.true(at > 0 || paths.length > 0);
        t.true(paths.length <= 64 && paths.every((path) => path.level >= 1 && path.level <= 4));
      }
    }),
    { numRuns: 500 },
  );
  t.true(read > 20, `${read} events`);
});
