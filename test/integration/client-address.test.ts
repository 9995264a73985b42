// Whose request it was: what the audit log shows behind reverse proxies, what the log says of a forgotten one, and what one
// address may take of a console.
import { randomBytes } from 'node:crypto';
import { type ClientRequest, get as httpGet } from 'node:http';
import { connect, type NetConnectOpts, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import test from 'ava';
import pg from 'pg';
import { startTestConsole, startTestConsoleProcess, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';

const WRONG = { email: 'nobody@example.com', password: 'wrong' };

test('X-Forwarded-For from a peer that is not trusted is ignored, and noted once with the address to add', async (t) => {
  const running = await startTestConsoleProcess({ env: { LOG_LEVEL: 'info' } });
  const database = new pg.Client({ connectionString: running.databaseUrl });
  await database.connect();
  try {
    const attempt = (ip: string) =>
      running.client.request('POST', '/api/auth/sign-in/email', WRONG, { 'x-forwarded-for': ip, 'x-real-ip': ip });
    for (const ip of ['198.51.100.1', '198.51.100.2', '127.0.0.1, 198.51.100.3']) t.is((await attempt(ip)).status, 401);
    const { rows } = await database.query(`select distinct ip from audit_entry where action = 'auth.sign_in_failed'`);
    t.deepEqual(rows, [{ ip: '127.0.0.1' }]);
    const lines = () =>
      running
        .log()
        .split('\n')
        .filter((line) => line.includes('SVC_TRUSTED_PROXIES'));
    await eventually(() => lines().length > 0);
    t.is(lines().length, 1);
    t.like(JSON.parse(lines()[0]!), { level: 'warn', peer: '127.0.0.1', add: '127.0.0.1' });
  } finally {
    await database.end();
    await running.stop();
  }
});

test('from trusted proxies the audit log has the first address from the right that is not theirs', async (t) => {
  const running = await startTestConsoleProcess({ env: { SVC_TRUSTED_PROXIES: '127.0.0.1,2001:db8::/32' } });
  const database = new pg.Client({ connectionString: running.databaseUrl });
  await database.connect();
  try {
    for (const [forwarded, expected] of [
      ['198.51.100.1', '198.51.100.1'],
      ['203.0.113.9, 198.51.100.1', '198.51.100.1'],
      ['198.51.100.1, 2001:DB8::7, ::ffff:127.0.0.1', '198.51.100.1'],
      ['2001:0470::00ff, 2001:db8::1', '2001:470::ff'],
      ['198.51.100.1, unknown', '127.0.0.1'],
    ] as const) {
      await running.client.request('POST', '/api/auth/sign-in/email', WRONG, { 'x-forwarded-for': forwarded });
      const { rows } = await database.query('select ip from audit_entry order by id desc limit 1');
      t.is(rows[0].ip, expected, forwarded);
    }
    t.false(running.log().includes('is not a trusted proxy'));
  } finally {
    await database.end();
    await running.stop();
  }
});

test('an address makes up 120 keys or sessions a minute, then 429 with Retry-After; what was known and others pass', async (t) => {
  const running = await startTestConsole({ env: { SVC_TRUSTED_PROXIES: '127.0.0.1' } });
  try {
    const { secret } = await running.client.rpc<{ secret: string }>('accessKeys.create', { name: 'known' });
    const ask = async (key: string, ip: string) => {
      const headers = { 'x-api-key': key, 'x-forwarded-for': ip };
      const response = await fetch(`${running.url}/api/v1/regions`, { headers });
      return { response, body: (await response.json()) as { code?: string; data?: { retryAfterSeconds: number } } };
    };
    const asked = async () => {
      const text = await running.running.runtime.metrics.getSingleMetricAsString(
        'svc_gateway_credential_questions_total',
      );
      return Number(/\{kind="service_account"\} (\d+)/.exec(text)?.[1] ?? 0);
    };
    t.is((await ask(secret, '198.51.100.1')).response.status, 200);
    const made = Array.from({ length: 150 }, () => `ews_${randomBytes(32).toString('base64url')}`);
    const answers: Awaited<ReturnType<typeof ask>>[] = [];
    // As many at a time as a slow machine answers.
    for (let from = 0; from < made.length; from += 10)
      answers.push(...(await Promise.all(made.slice(from, from + 10).map((key) => ask(key, '198.51.100.1')))));
    t.is(answers.filter(({ response }) => response.status === 401).length, 120);
    const refused = answers.filter(({ response }) => response.status === 429);
    t.is(refused.length, 30);
    for (const { response, body } of refused) {
      t.is(body.code, 'API_KEY_RATE_LIMITED');
      t.is(response.headers.get('retry-after'), String(body.data!.retryAfterSeconds));
    }
    t.is(await asked(), 120, 'no more questions to the database than that');
    t.is((await ask(secret, '198.51.100.1')).response.status, 200, 'a key that was known passes');
    t.is((await ask(made[149]!, '198.51.100.2')).response.status, 401, 'another address has its own');
    for (const path of ['/rpc/regions/list', '/rpc/live/watch']) {
      const session = await fetch(`${running.url}${path}`, {
        method: 'POST',
        headers: {
          'x-forwarded-for': '198.51.100.1',
          'x-csrf-token': 'orpc',
          'content-type': 'application/json',
          cookie: `svc_session_${running.running.runtime.env.instanceId}=${randomBytes(32).toString('base64url')}`,
        },
        body: '{}',
      });
      t.is(session.status, 429, path);
      t.is(((await session.json()) as { code: string }).code, 'SIGN_IN_RATE_LIMITED');
    }
  } finally {
    await running.stop();
  }
});

/** Whether a listener answers on a new connection, instead of ending it. */
const ANSWERS = {
  web: (options: NetConnectOpts) => first(httpGet({ ...options, path: '/healthz', agent: false }), 'response'),
  'node-channel': (options: NetConnectOpts) =>
    first(connectTls({ ...options, rejectUnauthorized: false }), 'secureConnect'),
};

function first(one: Duplex | ClientRequest, event: string): Promise<boolean> {
  return new Promise((resolve) => {
    one.once(event, () => resolve(true)).on('error', () => resolve(false));
  }).then((answer) => {
    one.destroy();
    return answer as boolean;
  });
}

for (const [listener, variable, urlOf] of [
  ['web', 'SVC_CONNECTIONS_PER_ADDRESS', (running: TestConsole) => running.url],
  ['node-channel', 'NODE_API_CONNECTIONS_PER_ADDRESS', (running: TestConsole) => running.nodeApiUrl],
] as const) {
  test(`an address holds as many connections to the ${listener} port as it may; more are ended and counted`, async (t) => {
    const running = await startTestConsole({
      env: { [variable]: '3', SVC_TRUSTED_PROXIES: '127.0.0.3' },
      setUp: false,
    });
    const open: Socket[] = [];
    try {
      const port = Number(new URL(urlOf(running)).port);
      const connects = async (localAddress: string): Promise<Socket> => {
        const socket = connect({ port, host: '127.0.0.1', localAddress });
        open.push(socket);
        socket.on('error', () => undefined);
        // Whoever does not read hears of no end.
        socket.resume();
        await new Promise<void>((resolve) => socket.once('connect', resolve).once('close', () => resolve()));
        return socket;
      };
      const refused = async () => {
        const text = await running.running.runtime.metrics.getSingleMetricAsString('svc_refused_connections_total');
        return Number(new RegExp(`listener="${listener}"\\} (\\d+)`).exec(text)?.[1] ?? 0);
      };
      const first = [await connects('127.0.0.2'), await connects('127.0.0.2'), await connects('127.0.0.2')];
      const more = [await connects('127.0.0.2'), await connects('127.0.0.2')];
      await eventually(() => more.every((socket) => socket.destroyed));
      t.is(await refused(), 2);
      for (let n = 0; n < 5; n++) await connects('127.0.0.3');
      await connects('127.0.0.4');
      first[0]!.destroy();
      // The console hears of the end in its own time.
      let tries = 0;
      await eventually(async () => {
        tries++;
        return ANSWERS[listener]({ port, host: '127.0.0.1', localAddress: '127.0.0.2' });
      });
      t.is(await refused(), 2 + tries - 1, 'neither a trusted proxy nor another address was refused');
    } finally {
      for (const socket of open) socket.destroy();
      await running.stop();
    }
  });
}
