// Calls to other processes: brokers of one process here, over the stock transporter for that.
import test, { type ExecutionContext } from 'ava';
import { type BrokerOptions, type Discoverers, ServiceBroker, type ServiceSchema } from 'moleculer';
import { Registry } from 'prom-client';
import { clusters } from '../../../contract/resources/clusters.ts';
import { contractService, implement } from '../../../mixins/contract-service.ts';
import { Elsewhere } from '../../../runtime/elsewhere.ts';
import { Heartbeats } from '../../../runtime/heartbeats.ts';
import { remoteCalls } from '../../../runtime/remote-calls.ts';
import { currentScope } from '../../../runtime/request-scope.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { eventually } from '../../helpers/eventually.ts';

/** Longer than a test may take: what ends before was ended by the bound of reads. */
const REQUEST_MS = 600_000;

type Handler = (params: { text?: string }) => unknown;
const never: Handler = () => new Promise(() => undefined);

async function startBroker(
  t: ExecutionContext,
  nodeID: string,
  services: ServiceSchema[] = [],
): Promise<ServiceBroker> {
  const broker = new ServiceBroker({
    namespace: t.title,
    nodeID,
    logger: false,
    transporter: 'Fake',
    requestTimeout: REQUEST_MS,
    middlewares: [remoteCalls],
    registry: { preferLocal: true, discoverer: new Heartbeats() as unknown as Discoverers.Base },
    validator: false,
    internalServices: false,
    skipProcessEventRegistration: true,
  } as BrokerOptions);
  for (const service of services) broker.createService(service);
  await broker.start();
  t.teardown(() => broker.stop());
  return broker;
}

/** A service `words` with a read and a write; `calls` notes where each ran. */
function words(node: string, calls: string[], handler: Handler): ServiceSchema {
  const noted = (action: string) => ({
    handler: ({ params }: { params: { text?: string } }) => {
      calls.push(`${action} in ${node}`);
      return handler(params);
    },
  });
  return {
    name: 'words',
    actions: { read: { ...noted('read'), repeatable: true }, write: noted('write') },
  } as unknown as ServiceSchema;
}

const known = (broker: ServiceBroker, service: string, processes: number) =>
  eventually(
    () => {
      const action = broker.registry.actions.list({ onlyAvailable: true, withEndpoints: true }) as {
        name: string;
        endpoints?: unknown[];
      }[];
      return action.some(({ name, endpoints }) => name.startsWith(service) && endpoints?.length === processes);
    },
    { what: `${processes} processes with ${service}` },
  );

test('a read that a process does not answer is tried once in another one', async (t) => {
  const calls: string[] = [];
  await startBroker(t, 'silent', [words('silent', calls, never)]);
  await startBroker(t, 'other', [words('other', calls, ({ text }) => text)]);
  const caller = await startBroker(t, 'caller');
  await known(caller, 'words', 2);
  // Round robin: one of two goes to the silent process first.
  const answers = await Promise.all([1, 2].map(() => caller.call('words.read', { text: 'hello' })));
  t.deepEqual(answers, ['hello', 'hello']);
  t.deepEqual(calls.sort(), ['read in other', 'read in other', 'read in silent']);
});

test('a read is tried in two processes at most, a write in one', async (t) => {
  const calls: string[] = [];
  for (const node of ['first', 'second', 'third']) await startBroker(t, node, [words(node, calls, never)]);
  const caller = await startBroker(t, 'caller');
  await known(caller, 'words', 3);
  await t.throwsAsync(caller.call('words.read'), { name: 'RequestTimeoutError' });
  t.is(new Set(calls).size, 2);
  t.is(calls.length, 2);
  await t.throwsAsync(caller.call('words.write', {}, { timeout: 200 }), { name: 'RequestTimeoutError' });
  t.is(calls.filter((call) => call.startsWith('write')).length, 1);
});

test('a process of the release before rejects operations and fields that it does not know, by code', async (t) => {
  let ran = 0;
  const before = implement(clusters.get, async ({ id }) => {
    ran++;
    return { id } as never;
  });
  await startBroker(t, 'before', [{ name: 'clusters', ...contractService([before]) } as ServiceSchema]);
  const caller = await startBroker(t, 'caller');
  await known(caller, 'clusters', 1);
  const meta = { call: {} };
  const id = 'b2a4dd10-6c0b-4e63-8cc6-29f9d33e58c5';
  t.deepEqual(await caller.call('clusters.get', { id }, { meta }), { id });
  const unknown = await t.throwsAsync(caller.call('clusters.archive', { id }, { meta }));
  t.like(unknown, { type: 'SERVICE_NOT_FOUND' });
  const error = await t.throwsAsync<Error & { type?: string; data?: unknown }>(
    caller.call('clusters.get', { id, withNodes: true }, { meta }),
  );
  t.like(error, { type: 'BAD_REQUEST', data: { issues: [{ path: '/withNodes' }] } });
  t.is(ran, 1);
});

test('a read for another process ends when its caller waits no longer, before one that began earlier here', async (t) => {
  const [own, others] = ['b2a4dd10-6c0b-4e63-8cc6-29f9d33e58c5', 'b2a4dd10-6c0b-4e63-8cc6-29f9d33e58c6'];
  const ended: string[] = [];
  const waiting: (() => void)[] = [];
  const read = implement(clusters.get, ({ id }) => {
    const { promise, reject } = Promise.withResolvers<never>();
    const end = () => reject(new Error('ended'));
    currentScope()!.began(() => {
      ended.push(id);
      end();
    });
    waiting.push(end);
    return promise;
  });
  const broker = await startBroker(t, 'reader', [{ name: 'clusters', ...contractService([read]) } as ServiceSchema]);
  const caller = await startBroker(t, 'caller');
  await known(caller, 'clusters', 1);
  const meta = { call: {} };
  const calls = [broker, caller].map((from, index) =>
    t.throwsAsync(from.call('clusters.get', { id: index === 0 ? own : others }, { meta })),
  );
  await eventually(() => ended.length > 0, { what: 'the end of a read' });
  t.deepEqual(ended, [others]);
  for (const end of waiting) end();
  await Promise.all(calls);
});

test('services that no process runs are known by name', async (t) => {
  const metrics = new Registry();
  const elsewhere = new Elsewhere({ metrics } as Runtime, ['letters', 'words']);
  t.deepEqual(elsewhere.missing(), ['letters', 'words']);
  const caller = await startBroker(t, 'caller');
  elsewhere.watch(caller);
  const other = await startBroker(t, 'other', [words('other', [], never)]);
  await known(caller, 'words', 1);
  t.deepEqual(elsewhere.missing(), ['letters']);
  t.regex(await metrics.metrics(), /^svc_missing_services\{service="letters"\} 1$/m);
  await other.stop();
  await eventually(() => elsewhere.missing().length === 2, { what: 'the end of the other process' });
});
