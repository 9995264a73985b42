import { create, type MessageInitShape } from '@bufbuild/protobuf';
import test from 'ava';
import { VitalReporter } from '../../../../agents/edge/run/vital-reporter.ts';
import { type GetVitalsResponse, GetVitalsResponseSchema } from '../../../../proto/gen/svc/edge/v1/edge_pb.js';
import { ConfigPositionSchema, FailedEntrySchema, Track } from '../../../../proto/gen/svc/node/v1/config_pb.js';
import type {
  NamedCountSchema,
  ReportVitalsRequest,
  VitalsSchema,
  VitalWatch,
} from '../../../../proto/gen/svc/node/v1/node_pb.js';
import { memoryLog } from '../helpers/log.ts';

const at = (revision: bigint) => create(ConfigPositionSchema, { epoch: 1n, track: Track.STABLE, revision });
const failing = (id: string, byte: number) =>
  create(FailedEntrySchema, { kind: 'site', id, receivedHash: new Uint8Array([byte]) });
const NOTHING = { siteIds: [], seconds: 0 };

type Figures = MessageInitShape<typeof VitalsSchema>;

/** A reporter whose data plane and console are the test's: it reports when it is told to. */
function start() {
  let answer: MessageInitShape<typeof GetVitalsResponseSchema> = {};
  const asked: string[][] = [];
  const sent: Partial<ReportVitalsRequest>[] = [];
  const world = {
    reachable: true,
    lost: false,
    watchNext: undefined as Pick<VitalWatch, 'siteIds' | 'seconds'> | undefined,
  };
  const reporter = new VitalReporter({
    client: {
      getVitals: async (siteIds: string[]): Promise<GetVitalsResponse> => {
        asked.push(siteIds);
        return create(GetVitalsResponseSchema, answer);
      },
    },
    channel: () =>
      world.reachable
        ? {
            reportVitals: async (request) => {
              sent.push(request);
              if (world.lost) throw new Error('lost');
              return world.watchNext as VitalWatch | undefined;
            },
          }
        : undefined,
    log: memoryLog().log,
    everyMs: 1e8,
  });
  return {
    reporter,
    world,
    asked,
    sent,
    /** What the data plane would answer now. */
    set(revision: bigint, vitals: Figures[], instanceId = 'one'): void {
      answer = { instanceId, config: at(revision), vitals };
    },
    /** Has it watched, and waits for what it reads at once. */
    async watch(...siteIds: string[]): Promise<void> {
      const before = asked.length;
      reporter.watch({ siteIds, seconds: 300 });
      while (asked.length === before) await new Promise((resolve) => setImmediate(resolve));
      await new Promise((resolve) => setImmediate(resolve));
    },
    async report(): Promise<Partial<ReportVitalsRequest> | undefined> {
      sent.length = 0;
      await reporter.report();
      return sent.at(-1);
    },
  };
}

const named = (name: string, count: bigint): MessageInitShape<typeof NamedCountSchema> => ({ name, count });
const figures = (report: Partial<ReportVitalsRequest> | undefined) =>
  report?.vitals?.map(({ siteId, requests, originErrors, edgeErrors }) => [
    siteId,
    requests,
    originErrors,
    ...edgeErrors.map(({ name, count }) => `${name} ${count}`),
  ]);

test('nothing is read and nothing is told while nothing is watched', async (t) => {
  const { reporter, asked, report } = start();
  reporter.onApplied(at(1n), [], 'one');
  t.is(await report(), undefined);
  reporter.watch(NOTHING);
  t.is(await report(), undefined);
  t.deepEqual(asked, []);
});

test('differences since the report before are told, of the node and of each watched site', async (t) => {
  const { reporter, set, watch, report, asked } = start();
  set(7n, [
    { siteId: '', requests: 100n, originErrors: 5n },
    { siteId: 'a', requests: 10n, edgeErrors: [named('no-origin', 1n)] },
  ]);
  await watch('a', 'b');
  t.deepEqual(asked.at(-1), ['a', 'b']);
  set(7n, [
    { siteId: '', requests: 150n, originErrors: 5n },
    { siteId: 'a', requests: 30n, edgeErrors: [named('no-origin', 4n), named('internal-error', 2n)] },
    { siteId: 'b', requests: 3n, originErrors: 2n },
  ]);
  const first = await report();
  t.deepEqual(figures(first), [
    ['', 50n, 0n],
    ['a', 20n, 0n, 'no-origin 3', 'internal-error 2'],
    ['b', 3n, 2n],
  ]);
  t.like(first, { dataPlaneInstance: 'one', restarted: false, failed: 0 });
  t.is(first?.config?.revision, 7n);
  t.deepEqual(figures(await report()), [
    ['', 0n, 0n],
    ['a', 0n, 0n],
    ['b', 0n, 0n],
  ]);
  reporter.stop();
});

test('a lost report is not repeated', async (t) => {
  const { reporter, world, set, watch, report } = start();
  set(7n, [{ siteId: '', requests: 1n }]);
  await watch();
  world.lost = true;
  set(7n, [{ siteId: '', requests: 11n }]);
  await report();
  world.lost = false;
  set(7n, [{ siteId: '', requests: 13n }]);
  t.deepEqual(figures(await report()), [['', 2n, 0n]]);
  reporter.stop();
});

test('what was counted up to a change belongs to the configuration before it', async (t) => {
  const { reporter, set, watch, report } = start();
  reporter.onApplied(at(7n), [], 'one');
  set(7n, [{ siteId: '', requests: 1n }]);
  await watch();
  set(8n, [{ siteId: '', requests: 4n }]);
  const before = await report();
  t.is(before?.config?.revision, 7n);
  t.deepEqual(figures(before), [['', 3n, 0n]]);
  set(8n, [{ siteId: '', requests: 9n }]);
  const after = await report();
  t.is(after?.config?.revision, 8n);
  t.deepEqual(figures(after), [['', 5n, 0n]]);
  reporter.stop();
});

test('a site that is asked about later, or was made again, begins with what it has', async (t) => {
  const { reporter, set, watch, report } = start();
  set(7n, [{ siteId: 'a', requests: 50n, originErrors: 3n }]);
  await watch('a');
  reporter.watch({ siteIds: ['a', 'late'], seconds: 300 });
  set(7n, [
    { siteId: 'a', requests: 4n },
    { siteId: 'late', requests: 1_000n },
  ]);
  t.deepEqual(figures(await report()), [['a', 4n, 0n]]);
  set(7n, [
    { siteId: 'a', requests: 4n },
    { siteId: 'late', requests: 1_001n },
  ]);
  t.deepEqual(figures(await report()), [
    ['a', 0n, 0n],
    ['late', 1n, 0n],
  ]);
  reporter.stop();
});

test('a data plane that was started again is told once, with what it counted', async (t) => {
  const { reporter, set, watch, report } = start();
  reporter.onApplied(at(7n), [], 'one');
  set(7n, [{ siteId: '', requests: 100n }]);
  await watch();
  set(7n, [{ siteId: '', requests: 6n }], 'two');
  const report1 = await report();
  t.like(report1, { restarted: true, dataPlaneInstance: 'two' });
  t.deepEqual(figures(report1), [['', 6n, 0n]]);
  reporter.onApplied(at(7n), [], 'two');
  t.like(await report(), { restarted: false });
  reporter.stop();
});

test('a data plane that died of a change is told, also when it died before anything was watched', async (t) => {
  const { reporter, set, watch, sent } = start();
  reporter.onApplied(at(7n), [], 'one');
  reporter.onApplied(at(8n), [], 'one');
  reporter.onApplied(at(8n), [], 'two');
  set(8n, [{ siteId: '', requests: 6n }], 'two');
  await watch();
  t.true(sent.some(({ restarted, config }) => restarted && config?.revision === 8n));
  reporter.stop();
});

test('entries that fail count when they did not fail before the change', async (t) => {
  const { reporter, set, watch, report } = start();
  reporter.onApplied(at(7n), [failing('old', 1)], 'one');
  set(7n, [{ siteId: '' }]);
  await watch();
  t.like(await report(), { failed: 0 });
  set(8n, [{ siteId: '' }]);
  reporter.onApplied(at(8n), [failing('old', 1), failing('new', 2)], 'one');
  await report();
  t.like(await report(), { failed: 1 });
  set(9n, [{ siteId: '' }]);
  reporter.onApplied(at(9n), [failing('old', 1), failing('new', 3)], 'one');
  await report();
  t.like(await report(), { failed: 1 });
  reporter.stop();
});

test('a report ends what is watched when the console says so, and so does a lost connection', async (t) => {
  const { reporter, world, set, watch, report, asked } = start();
  set(7n, [{ siteId: '' }]);
  await watch('a');
  world.watchNext = NOTHING;
  t.truthy(await report());
  const reads = asked.length;
  t.is(await report(), undefined);
  t.is(asked.length, reads);
  await watch('a');
  world.reachable = false;
  t.is(await report(), undefined);
  reporter.stop();
});
