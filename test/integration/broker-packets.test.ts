// What anybody with access to Redis can do to the calls between console processes: nothing.
import { randomBytes } from 'node:crypto';
import test from 'ava';
import { Redis } from 'ioredis';
import { PacketGuard } from '../../runtime/packet-guard.ts';
import { PacketSeal } from '../../runtime/packet-seal.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';

let running: TestConsole;
let stranger: Redis;

test.before(async () => {
  running = await startTestConsole({ env: { SVC_TRANSPORTER: 'redis' } });
  stranger = new Redis(running.env.REDIS_URL!);
});
test.after.always(async () => {
  stranger?.disconnect();
  await running?.stop();
});

/** Topic of the console's own requests. */
const topic = () => {
  const { nodeID, namespace } = running.running.broker;
  return `MOL-${namespace}.REQ.${nodeID}`;
};

/** A call of the operator, as a process of the console would put it. */
function request(name: string): Buffer {
  const actor = { type: 'user', id: 'nobody', name: 'Nobody' };
  const call = { actor, ip: null, userAgent: null, requestId: name, idempotency: null };
  const packet = {
    ver: running.running.broker.PROTOCOL_VERSION,
    sender: 'stranger',
    id: randomBytes(8).toString('hex'),
    action: 'regions.create',
    params: { name, code: name },
    meta: { call },
    level: 1,
    tracing: null,
    parentID: null,
    requestID: name,
    caller: null,
    stream: false,
  };
  return Buffer.from(JSON.stringify(packet));
}

const refused = async () => {
  const metrics = await running.running.runtime.metrics.metrics();
  return Number(/svc_refused_messages_total\{of="broker"\} (\d+)/.exec(metrics)?.[1] ?? 0);
};

async function isRefused(packet: Buffer): Promise<void> {
  const before = await refused();
  await stranger.publish(topic(), packet);
  await eventually(async () => (await refused()) === before + 1, { what: 'the packet to be refused' });
}

const regions = async () =>
  (await running.client.api<{ items: { code: string }[] }>('GET', '/regions')).items.map(({ code }) => code);

const guardOf = (key: string) => new PacketGuard(new PacketSeal('broker', Buffer.from(key, 'base64'), null));

test.serial('a request without the seal of the master key calls nothing and is counted', async (t) => {
  await isRefused(request('bare'));
  await isRefused(guardOf(randomBytes(32).toString('base64')).wrap(topic(), request('foreign')));
  // The same request with the seal is called: nothing else than the seal was wrong with the others.
  const sealed = guardOf(running.env.SVC_MASTER_KEY!).wrap(topic(), request('sealed'));
  await stranger.publish(topic(), sealed);
  await eventually(async () => (await regions()).includes('sealed'), { what: 'the sealed request to be called' });
  const codes = await regions();
  t.false(codes.includes('bare'));
  t.false(codes.includes('foreign'));
});

test.serial('a packet that was heard does nothing when it is sent again, here or to another process', async (t) => {
  const packet = guardOf(running.env.SVC_MASTER_KEY!).wrap(topic(), request('heard'));
  await stranger.publish(topic(), packet);
  const { id } = await eventually(
    async () =>
      (await running.client.api<{ items: { id: string; code: string }[] }>('GET', '/regions')).items.find(
        ({ code }) => code === 'heard',
      ),
    { what: 'the request to be called' },
  );
  await running.client.api('DELETE', `/regions/${id}`);
  await isRefused(packet);
  await isRefused(guardOf(running.env.SVC_MASTER_KEY!).wrap(`${topic()}-before`, request('before')));
  t.false((await regions()).some((code) => code === 'heard' || code === 'before'));
});
