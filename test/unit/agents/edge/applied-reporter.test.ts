import { create } from '@bufbuild/protobuf';
import test from 'ava';
import type { ReachedPlace } from '../../../../agents/edge/lib/agent-event.ts';
import { AppliedReporter } from '../../../../agents/edge/run/applied-reporter.ts';
import type { NodeChannel } from '../../../../agents/kit/channel-client.ts';
import { BanPositionSchema } from '../../../../proto/gen/svc/node/v1/bans_pb.js';
import { AcmePositionSchema } from '../../../../proto/gen/svc/node/v1/certificates_pb.js';
import { ConfigPositionSchema } from '../../../../proto/gen/svc/node/v1/config_pb.js';
import type { AppliedRequest } from '../../../../proto/gen/svc/node/v1/node_pb.js';
import { memoryLog } from '../helpers/log.ts';

const place = (feed: string, number: bigint, urgent: boolean, write: ReachedPlace['write']): ReachedPlace => ({
  feed,
  epoch: 1n,
  number,
  urgent,
  write,
});
const bans = (sequence: bigint) =>
  place('bans', sequence, false, (request, bansSteps) => {
    const position = create(BanPositionSchema, { epoch: 1n, sequence });
    Object.assign(request, { bans: position, bansMicros: sequence, bansSteps });
  });
const config = (revision: bigint, micros: number) =>
  place('config', revision, false, (request) => {
    const position = create(ConfigPositionSchema, { epoch: 1n, revision });
    Object.assign(request, { config: position, configMicros: BigInt(micros) });
  });

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
  for (let sequence = 1n; sequence <= 20n; sequence++) reporter.reached(bans(sequence));
  reporter.reached(config(1n, 7));
  reporter.reached(config(2n, 8));
  await reported;
  reporter.stop();
  t.is(reports.length, 1);
  const [report] = reports;
  t.is(report!.bans?.sequence, 20n);
  t.is(report!.bansMicros, 20n);
  t.deepEqual(
    report!.bansSteps?.map(({ number }) => number),
    Array.from({ length: 20 }, (_, index) => BigInt(index + 1)),
  );
  t.is(report!.config?.revision, 2n);
  t.is(report!.configMicros, 8n);
});

test('what certificate authorities wait for is reported without a pause, also behind a report under way', async (t) => {
  const acme = (sequence: bigint) =>
    place('acme', sequence, true, (request) =>
      Object.assign(request, { acme: create(AcmePositionSchema, { epoch: 1n, sequence }) }),
    );
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
  reporter.reached(acme(1n));
  t.is(reports.length, 1, 'in the same turn');
  reporter.reached(acme(2n));
  reporter.reached(acme(3n));
  first.resolve();
  await second.promise;
  reporter.stop();
  t.deepEqual(
    reports.map((report) => report.acme?.sequence),
    [1n, 3n],
  );
});
