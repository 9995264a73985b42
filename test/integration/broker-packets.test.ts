// What anybody with access to Redis can read of the calls between console processes, and do to them: nothing.
import { randomBytes } from 'node:crypto';
import test from 'ava';
import { Redis } from 'ioredis';
import { PacketCipher } from '../../runtime/packet-cipher.ts';
import { PacketGuard } from '../../runtime/packet-guard.ts';
import { PacketSeal } from '../../runtime/packet-seal.ts';
import { startTestConsole, TEST_OPERATOR, type TestConsole } from '../helpers/console.ts';
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

function guardOf(key: string): PacketGuard {
  const bytes = Buffer.from(key, 'base64');
  return new PacketGuard(new PacketSeal('broker', bytes, null), new PacketCipher('broker', bytes, null));
}

for (const form of ['encrypted', 'signed'] as const) {
  test.serial(`${form}: a request of another master key, changed or cut, calls nothing and is counted`, async (t) => {
    await isRefused(request('bare'));
    await isRefused(guardOf(randomBytes(32).toString('base64')).wrap(topic(), request('foreign'), form));
    const packet = guardOf(running.env.SVC_MASTER_KEY!).wrap(topic(), request(form), form);
    for (const at of [0, 3, 20, 40, packet.length - 1]) {
      const changed = Buffer.from(packet);
      changed[at]! ^= 1;
      await isRefused(changed);
      await isRefused(packet.subarray(0, at));
    }
    // The same request as it was made is called: nothing else was wrong with the others.
    await stranger.publish(topic(), packet);
    await eventually(async () => (await regions()).includes(form), { what: 'the request to be called' });
    const codes = await regions();
    t.false(codes.includes('bare'));
    t.false(codes.includes('foreign'));
  });
}

test.serial('nothing of a call between processes can be read in Redis', async (t) => {
  const { env, databaseUrl } = running;
  const heard: Buffer[] = [];
  const listener = new Redis(env.REDIS_URL!);
  listener.on('pmessageBuffer', (_pattern: string, _channel: Buffer, packet: Buffer) => heard.push(packet));
  await listener.psubscribe(`MOL-${running.running.broker.namespace}*`);
  // A second process has the web port alone: what it is asked, it calls the first one for.
  const web = await startTestConsole({
    database: { url: databaseUrl },
    masterKey: env.SVC_MASTER_KEY!,
    redisPrefix: env.SVC_REDIS_PREFIX!,
    setUp: false,
    env: { SERVICES: 'api-gateway' },
  });
  try {
    const { email, password } = TEST_OPERATOR;
    await eventually(
      () =>
        web.client.signIn({ email, password }).then(
          () => true,
          () => false,
        ),
      { what: 'a call of the other process' },
    );
    const secret = await web.client.createKey('unread-name');
    const traffic = Buffer.concat(heard).toString('latin1');
    for (const text of [email, password, secret, 'unread-name']) t.is(traffic.indexOf(text, 0), -1, text);
    t.true(traffic.length > 0);
  } finally {
    await web.stop();
    listener.disconnect();
  }
});

test.serial('a packet that was heard does nothing when it is sent again, here or to another process', async (t) => {
  const packet = guardOf(running.env.SVC_MASTER_KEY!).wrap(topic(), request('heard'), 'encrypted');
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
  await isRefused(guardOf(running.env.SVC_MASTER_KEY!).wrap(`${topic()}-before`, request('before'), 'encrypted'));
  t.false((await regions()).some((code) => code === 'heard' || code === 'before'));
});
