// The rate limit of access keys (specification: Authentication 3), over two gateway processes. The limit's clock is the
// life of a key in Redis, so that a test can wind it on.
import test from 'ava';
import { Redis } from 'ioredis';
import { startTestConsole, startTestConsoleProcess, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { rawRequest } from '../helpers/raw-http.ts';
import { servers } from '../helpers/servers.ts';
import { tcpProxy, throughProxy } from '../helpers/tcp-proxy.ts';
import { noteWrites } from '../helpers/writes.ts';

interface Body {
  code: string;
  data: Record<string, unknown>;
}

interface Key {
  id: string;
  secret: string;
}

type Process = Awaited<ReturnType<typeof startTestConsoleProcess>>;

let running: TestConsole;
let gateways: Process[] = [];
let redis: Redis;

test.before(async () => {
  running = await startTestConsole();
  const shared = {
    env: { REDIS_URL: running.env.REDIS_URL!, ROLE: 'app', LOG_LEVEL: 'info' },
    database: { url: running.databaseUrl },
    masterKey: running.env.SVC_MASTER_KEY!,
    redisPrefix: running.env.SVC_REDIS_PREFIX!,
    setUp: false,
  };
  gateways = [await startTestConsoleProcess(shared), await startTestConsoleProcess(shared)];
  redis = new Redis(running.env.REDIS_URL!);
});

test.after.always(async () => {
  redis?.disconnect();
  for (const gateway of gateways) await gateway.stop();
  await running?.stop();
});

let sequence = 0;

async function newKey(): Promise<Key> {
  const { key, secret } = await running.client.rpc<{ key: { id: string }; secret: string }>('accessKeys.create', {
    name: `counted ${++sequence}`,
  });
  return { id: key.id, secret };
}

async function get(url: string, secret: string, path = '/api/v1/me') {
  const response = await fetch(`${url}${path}`, { headers: { 'x-api-key': secret } });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Body };
}

const counter = (key: Key) => `${running.env.SVC_REDIS_PREFIX}svc:rate:${key.id}`;
/** As if these many requests had been accepted, the last one this long ago. */
const accepted = (key: Key, count: number, msAgo = 0) => redis.set(counter(key), String(count), 'PX', 60_000 - msAgo);
const urls = () => gateways.map(({ url }) => url);
const at = (index: number) => urls()[index % gateways.length]!;

test.serial('600 requests in a row pass over both gateways together, and not one more', async (t) => {
  const key = await newKey();
  const statuses: number[] = [];
  for (let batch = 0; batch < 13; batch++) {
    const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => get(at(index), key.secret)));
    statuses.push(...answers.map(({ status }) => status));
  }
  t.is(statuses.filter((status) => status === 200).length, 600);
  t.is(statuses.filter((status) => status === 429).length, 50);
  t.true(
    statuses.slice(0, 600).every((status) => status === 200),
    'the first 600 pass',
  );
});

test.serial(
  'beyond it the answer is 429 API_KEY_RATE_LIMITED with the seconds to wait, also as Retry-After',
  async (t) => {
    const key = await newKey();
    await accepted(key, 600);
    for (const url of urls()) {
      const { status, body, headers } = await get(url, key.secret);
      t.is(`${status} ${body.code}`, '429 API_KEY_RATE_LIMITED');
      const wait = body.data.retryAfterSeconds as number;
      t.true(Number.isInteger(wait) && wait >= 1 && wait <= 60, String(wait));
      t.is(headers.get('retry-after'), String(wait));
    }
  },
);

test.serial(
  'the wait is counted from the last accepted request: one that is refused neither counts nor moves the clock',
  async (t) => {
    const key = await newKey();
    await accepted(key, 600, 40_000);
    let left = 20_001;
    for (let round = 0; round < 10; round++) {
      const { status, body } = await get(at(round), key.secret);
      t.is(status, 429);
      t.true((body.data.retryAfterSeconds as number) <= 20);
      t.is(await redis.get(counter(key)), '600');
      const now = await redis.pttl(counter(key));
      t.true(now > 0 && now <= left, `${now} of ${left}`);
      left = now;
    }
  },
);

test.serial('the count restarts when more than 60 seconds pass since the previous request', async (t) => {
  const key = await newKey();
  await accepted(key, 600);
  t.is((await get(at(0), key.secret)).status, 429);
  // Nothing but the end of the 60 s lets it through again.
  await redis.pexpire(counter(key), 1);
  await eventually(async () => (await redis.exists(counter(key))) === 0);
  t.is((await get(at(1), key.secret)).status, 200);
  t.is(await redis.get(counter(key)), '1');
});

test.serial('every accepted request starts the 60 seconds anew, at either gateway', async (t) => {
  const key = await newKey();
  for (const [index, url] of urls().entries()) {
    await accepted(key, 10, 55_000);
    t.is((await get(url, key.secret)).status, 200, `gateway ${index}`);
    t.is(await redis.get(counter(key)), '11');
    t.true((await redis.pttl(counter(key))) > 30_000);
  }
});

test.serial('of requests that arrive together as many are accepted as are left, whatever other keys do', async (t) => {
  const [full, nearly, fresh] = [await newKey(), await newKey(), await newKey()];
  await accepted(full, 600, 30_000);
  await accepted(nearly, 595, 30_000);
  const together = Array.from({ length: 60 }, (_, index) => [full, nearly, fresh][index % 3]!);
  const answers = await Promise.all(together.map((key, index) => get(at(index >> 2), key.secret)));
  const waits = (key: Key) => {
    const own = answers.filter((_, index) => together[index] === key);
    t.true(own.every(({ status }) => status === 200 || status === 429));
    return own.filter(({ status }) => status === 429).map(({ body }) => body.data.retryAfterSeconds as number);
  };
  t.is(waits(fresh).length, 0);
  t.is(await redis.get(counter(fresh)), '20');
  t.is(waits(full).length, 20);
  t.true(waits(full).every((wait) => wait <= 30));
  t.is(waits(nearly).length, 15);
  // Counted from the last that was accepted, which came with them.
  t.true(waits(nearly).every((wait) => wait > 30));
  t.is(await redis.get(counter(nearly)), '600');
});

test.serial('keys are counted apart, refusals for other reasons count, and 401 is nobody to count', async (t) => {
  const [busy, quiet] = [await newKey(), await newKey()];
  await accepted(busy, 600);
  t.is((await get(at(0), busy.secret)).status, 429);
  t.is((await get(at(0), quiet.secret)).status, 200);
  t.is((await get(at(0), quiet.secret, '/api/v1/clusters/none')).status, 404);
  t.is((await get(at(0), quiet.secret, '/api/v1/clusters?page=0')).status, 400);
  t.is(await redis.get(counter(quiet)), '3');
  const before = (await redis.keys(`${running.env.SVC_REDIS_PREFIX}svc:rate:*`)).length;
  t.is((await get(at(0), `ewk_${'A'.repeat(43)}`)).status, 401);
  t.is((await redis.keys(`${running.env.SVC_REDIS_PREFIX}svc:rate:*`)).length, before);
});

test.serial('it is decided before a body is read', async (t) => {
  const key = await newKey();
  await accepted(key, 600);
  for (const url of urls()) {
    const head = [
      'POST /api/v1/clusters HTTP/1.1',
      'Host: localhost',
      `X-Api-Key: ${key.secret}`,
      'Content-Type: application/json',
      'Content-Length: 1000000',
      'Expect: 100-continue',
    ];
    // Not a byte of the body is sent, and the server does not ask for it.
    const answer = await rawRequest(url, `${head.join('\r\n')}\r\n\r\n`);
    t.is(answer.status, 429);
    t.is(JSON.parse(answer.body).code, 'API_KEY_RATE_LIMITED');
  }
});

test.serial('counting writes nothing to the database', async (t) => {
  const key = await newKey();
  const written = await noteWrites(running.running.runtime.pools.api);
  for (let batch = 0; batch < 6; batch++) {
    await Promise.all(Array.from({ length: 50 }, (_, index) => get(at(index), key.secret)));
  }
  // A key's last use, at most once a minute and gateway, and so of each key of the tests before.
  t.deepEqual(
    (await written()).filter((table) => table !== 'access_key'),
    [],
  );
  t.true((await written()).length < 300, 'not with each request');
});

test.serial('while Redis is away each gateway counts by itself, and says so', async (t) => {
  const { redisUrl } = await servers();
  const link = await tcpProxy(redisUrl);
  const alone = await startTestConsole({ env: { REDIS_URL: throughProxy(redisUrl, link), LOG_LEVEL: 'fatal' } });
  t.teardown(async () => {
    await alone.stop();
    await link.close();
  });
  const countedAlone = async () => {
    const text = await (await fetch(`${alone.metricsUrl}/metrics`)).text();
    return Number(/^svc_gateway_requests_counted_alone_total ([0-9]+)$/m.exec(text)?.[1]);
  };
  const { accessKey } = alone.client;
  t.is((await get(alone.url, accessKey)).status, 200);
  t.is(await countedAlone(), 0);
  link.cut();
  const statuses: number[] = [];
  for (let batch = 0; batch < 13; batch++) {
    const answers = await Promise.all(Array.from({ length: 50 }, () => get(alone.url, accessKey)));
    statuses.push(...answers.map(({ status }) => status));
  }
  t.is(statuses.filter((status) => status === 200).length, 600);
  t.is(statuses.filter((status) => status === 429).length, 50);
  t.is(await countedAlone(), 650);
  link.restore();
  await eventually(
    async () => {
      const before = await countedAlone();
      const { status } = await get(alone.url, accessKey);
      return status === 200 && (await countedAlone()) === before;
    },
    { what: 'counting over all gateways again' },
  );
});

test.serial('a Redis that hangs holds up the requests that ask it, not all that follow', async (t) => {
  const { redisUrl } = await servers();
  const link = await tcpProxy(redisUrl);
  const alone = await startTestConsole({ env: { REDIS_URL: throughProxy(redisUrl, link), LOG_LEVEL: 'fatal' } });
  t.teardown(async () => {
    await alone.stop();
    await link.close();
  });
  const { accessKey } = alone.client;
  link.freeze();
  const answers = await Promise.all(Array.from({ length: 20 }, () => get(alone.url, accessKey)));
  t.true(answers.every(({ status }) => status === 200));
  t.is((await get(alone.url, accessKey)).status, 200);
});
