// What a node says of itself.
import { create } from '@bufbuild/protobuf';
import test from 'ava';
import { reportDataPlane } from '../../../../agents/edge/caddy/data-plane-report.ts';
import { NodeReport } from '../../../../agents/edge/lib/node-report.ts';
import { GetStatusResponseSchema } from '../../../../proto/gen/svc/edge/v1/edge_pb.js';

test('a node tells of its databases once its data plane did', (t) => {
  const silent = new NodeReport();
  reportDataPlane(silent, { status: undefined, healthy: false, message: 'the data plane has not answered yet' });
  t.is(silent.toHeartbeat().info?.geoip, undefined);
  t.is(silent.toHeartbeat().message, 'the data plane has not answered yet');
  const geoip = { country: { ready: true, builtAt: 1n }, asn: { problem: 'no database is configured' } };
  const report = new NodeReport();
  reportDataPlane(report, { status: create(GetStatusResponseSchema, { geoip }), healthy: true, message: '' });
  t.like(report.toHeartbeat().info?.geoip, {
    country: { ready: true, builtAt: 1n },
    asn: { ready: false, problem: 'no database is configured' },
  });
});

test('the message of a node names what is most urgent first, in at most 500 characters', (t) => {
  const report = new NodeReport();
  t.is(report.message, '');
  report.problem('lasting', 'no room in the kernel');
  report.problem('feature', '');
  report.problem('feature', 'a certificate is missing');
  report.problem('serving', 'port 80: in use');
  report.problem('following', 'bans not fetched');
  t.is(report.message, 'port 80: in use; bans not fetched; a certificate is missing; no room in the kernel');
  report.problem('serving', 'x'.repeat(600));
  t.is(report.message.length, 500);
  t.is(report.toStatus().lastError, report.message);
});
