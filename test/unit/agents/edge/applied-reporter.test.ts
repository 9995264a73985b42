import { create } from '@bufbuild/protobuf';
import test from 'ava';
import { AppliedReporter } from '../../../../agents/edge/run/applied-reporter.ts';
import type { NodeChannel } from '../../../../agents/kit/channel-client.ts';
import { BanPositionSchema } from '../../../../proto/gen/svc/node/v1/bans_pb.js';
import { AcmePositionSchema } from '../../../../proto/gen/svc/node/v1/certificates_pb.js';
import { ConfigPositionSchema } from '../../../../proto/gen/svc/node/v1/config_pb.js';
import type { AppliedRequest } from '../../../../proto/gen/svc/node/v1/node_pb.js';
import { memoryLog } from '../helpers/log.ts';

const bans = (sequence: bigint) => create(BanPositionSchema, { epoch: 1n, sequence });
const config = (revision: bigint) => create(ConfigPositionSchema, { epoch: 1n, revision });

test('of what piled up meanwhile, the last position of each feed is reported', async (t) => {
  const reports: Partial<AppliedRequest>[] = [];
  const { promise: reported, resolve } = Promise.withResolvers<void>();
  const channel = {
    applied: async (report: Partial<AppliedRequest>) => {
      reports.push(report);
      resolve();
    },
  } as unknown as NodeChannel;
  const reporter = new AppliedReporter(() => channel, memoryLog().log);
  reporter.spread(100);
  for (let sequence = 1n; sequence <= 20n; sequence++) reporter.bansApplied(bans(sequence), Number(sequence));
  reporter.configApplied(config(1n), [], 7);
  reporter.configApplied(config(2n), [], 8);
  await reported;
  reporter.stop();
  t.is(reports.length, 1);
  const [report] = reports;
  t.is(report!.bans?.sequence, 20n);
  t.is(report!.bansMicros, 20n);
  t.is(report!.config?.revision, 2n);
  t.is(report!.configMicros, 8n);
});

test('what certificate authorities wait for is reported without a pause, also behind a report under way', async (t) => {
  const acme = (sequence: bigint) => create(AcmePositionSchema, { epoch: 1n, sequence });
  const reports: Partial<AppliedRequest>[] = [];
  const first = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  const channel = {
    applied: async (report: Partial<AppliedRequest>) => {
      reports.push(report);
      if (reports.length === 1) await first.promise;
      else second.resolve();
    },
  } as unknown as NodeChannel;
  const reporter = new AppliedReporter(() => channel, memoryLog().log);
  reporter.spread(10_000);
  reporter.acmeApplied(acme(1n));
  t.is(reports.length, 1, 'in the same turn');
  reporter.acmeApplied(acme(2n));
  reporter.acmeApplied(acme(3n));
  first.resolve();
  await second.promise;
  reporter.stop();
  t.deepEqual(
    reports.map((report) => report.acme?.sequence),
    [1n, 3n],
  );
});
