// Keys and sessions that end, over two gateway processes that remember whom they have seen (specification: Authentication
// 1, Sign-in endpoints): refused from the next request on, everywhere, whatever links are down. The second gateway hears
// what ends through a link of its own to the database, and reaches Redis through another.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import test from 'ava';
import { Redis } from 'ioredis';
import { ConsoleClient, TEST_OPERATOR } from '../../bin/lib/console-client.ts';
import { root } from '../../bin/lib/root.ts';
import {
  startTestConsole,
  startTestConsoleProcess,
  type TestConsole,
  type TestConsoleProcess,
} from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { servers } from '../helpers/servers.ts';
import { type TcpProxy, tcpProxy, throughProxy } from '../helpers/tcp-proxy.ts';

const { email, password } = TEST_OPERATOR;

let home: TestConsole;
let away: TestConsoleProcess;
let notices: TcpProxy;
let redisLink: TcpProxy;
let sequence = 0;

function gateway(env: NodeJS.ProcessEnv = {}): Promise<TestConsoleProcess> {
  return startTestConsoleProcess({
    env: { ROLE: 'app', ...env },
    database: { url: home.databaseUrl },
    masterKey: home.env.SVC_MASTER_KEY!,
    redisPrefix: home.env.SVC_REDIS_PREFIX!,
    setUp: false,
  });
}

test.before(async () => {
  const { redisUrl } = await servers();
  home = await startTestConsole();
  notices = await tcpProxy(home.databaseUrl);
  redisLink = await tcpProxy(redisUrl);
  away = await gateway({
    DATABASE_DIRECT_URL: throughProxy(home.databaseUrl, notices),
    REDIS_URL: throughProxy(redisUrl, redisLink),
  });
});

test.after.always(async () => {
  await away?.stop();
  await home?.stop();
  await notices?.close();
  await redisLink?.close();
});

// What can end ----------------------------------------------------------------------------------------------------------

/** Something to call with, and the status of a call with it at a gateway. */
interface Credential {
  kind: 'access_key' | 'service_account' | 'session';
  call(url: string): Promise<number>;
}

/** Ends a credential at the first gateway, and answers once that says so. */
interface Ending {
  credential: Credential;
  end(): Promise<unknown>;
}

const statusOf = async (url: string, init: RequestInit) => {
  const response = await fetch(url, init);
  await response.arrayBuffer();
  return response.status;
};

const withKey = (kind: Credential['kind'], secret: string): Credential => ({
  kind,
  call: (url) => statusOf(`${url}/api/v1/me`, { headers: { 'x-api-key': secret } }),
});

const withCookie = (cookie: string): Credential => ({
  kind: 'session',
  call: (url) =>
    statusOf(`${url}/rpc/account/me`, {
      method: 'POST',
      headers: { cookie, 'x-csrf-token': 'orpc', 'content-type': 'application/json' },
      body: '{}',
    }),
});

async function browser(): Promise<ConsoleClient> {
  const client = new ConsoleClient(home.url, home.env.SVC_PUBLIC_URL!);
  await client.signIn({ email, password });
  return client;
}

async function accessKey(): Promise<Ending> {
  const { key, secret } = await home.client.rpc<{ key: { id: string }; secret: string }>('accessKeys.create', {
    name: `ends ${++sequence}`,
  });
  return { credential: withKey('access_key', secret), end: () => home.client.rpc('accessKeys.revoke', { id: key.id }) };
}

async function accountKey() {
  const { id } = await home.client.rpc<{ id: string }>('serviceAccounts.create', { name: `ends ${++sequence}` });
  const { key, secret } = await home.client.rpc<{ key: { id: string }; secret: string }>('serviceAccounts.createKey', {
    id,
  });
  return { id, keyId: key.id, credential: withKey('service_account', secret) };
}

async function session(end: (client: ConsoleClient) => Promise<unknown>): Promise<Ending> {
  const client = await browser();
  return { credential: withCookie(client.cookie), end: () => end(client) };
}

const post = (client: ConsoleClient, path: string, body: object) =>
  client.auth('POST', path, body).then(({ status }) => {
    if (status !== 200) throw new Error(`${path}: ${status}`);
  });

const changePassword = (client: ConsoleClient) =>
  post(client, '/change-password', { currentPassword: password, newPassword: password, revokeOtherSessions: true });

const ENDINGS: Readonly<Record<string, () => Promise<Ending>>> = {
  'a revoked access key': accessKey,
  'a revoked key of a service account': async () => {
    const { id, keyId, credential } = await accountKey();
    return { credential, end: () => home.client.rpc('serviceAccounts.revokeKey', { id, keyId }) };
  },
  'a key of a disabled service account': async () => {
    const { id, credential } = await accountKey();
    return { credential, end: () => home.client.rpc('serviceAccounts.update', { id, enabled: false }) };
  },
  'a key of a deleted service account': async () => {
    const { id, credential } = await accountKey();
    return { credential, end: () => home.client.rpc('serviceAccounts.delete', { id }) };
  },
  'a session that was signed out': () => session((client) => post(client, '/sign-out', {})),
  'a session that was brought to a sign-in': () =>
    session((client) => post(client, '/sign-in/email', { email, password })),
  'the session that changed the password': () => session(changePassword),
  'another session when the password is changed': async () => {
    const { credential } = await session(async () => undefined);
    const other = await browser();
    return {
      credential,
      end: async () => {
        await changePassword(other);
        // Theirs ended, too.
        await home.client.signIn({ email, password });
      },
    };
  },
};

/** Asks both gateways until both have seen it. */
async function seenEverywhere({ call }: Credential): Promise<void> {
  for (const url of [home.url, away.url]) {
    const status = await call(url);
    if (status !== 200) throw new Error(`${url}: ${status}`);
  }
}

async function questions(of: { metricsUrl: string }, kind: Credential['kind']): Promise<number> {
  const text = await (await fetch(`${of.metricsUrl}/metrics`)).text();
  const match = new RegExp(`^svc_gateway_credential_questions_total\\{kind="${kind}"\\} ([0-9]+)$`, 'm').exec(text);
  return Number(match?.[1] ?? 0);
}

/** Questions to the database that this many requests with the credential cost the gateway. */
async function questionsOf(of: { url: string; metricsUrl: string }, { kind, call }: Credential, requests: number) {
  const before = await questions(of, kind);
  for (let request = 0; request < requests; request++) await call(of.url);
  return (await questions(of, kind)) - before;
}

const remembers = (of: { url: string; metricsUrl: string }, credential: Credential) =>
  eventually(async () => (await questionsOf(of, credential, 20)) < 10, { what: 'remembering' });

// The promise -----------------------------------------------------------------------------------------------------------

for (const [what, make] of Object.entries(ENDINGS)) {
  test.serial(`${what} is refused from the next request on, at every gateway`, async (t) => {
    for (let round = 0; round < 3; round++) {
      const { credential, end } = await make();
      await remembers(away, credential);
      await seenEverywhere(credential);
      await end();
      t.is(await credential.call(away.url), 401);
      t.is(await credential.call(home.url), 401);
    }
  });
}

test.serial('sessions that npm run recover ends are refused by gateways that remembered them', async (t) => {
  const { credential } = await session(async () => undefined);
  await remembers(away, credential);
  await seenEverywhere(credential);
  const child = spawn(process.execPath, [join(root, 'bin', 'recover.ts'), '--reset-password'], {
    env: { PATH: process.env.PATH, DATABASE_URL: home.databaseUrl },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  child.stdin.end(`${password}\n`);
  t.deepEqual(await once(child, 'exit'), [0, null]);
  for (const url of [home.url, away.url]) await eventually(async () => (await credential.call(url)) === 401);
  await home.client.signIn({ email, password });
});

test.serial('scopes that are taken away are gone with the answer', async (t) => {
  const { id } = await home.client.rpc<{ id: string }>('serviceAccounts.create', {
    name: `ends ${++sequence}`,
    scopes: ['clusters:read'],
  });
  const { secret } = await home.client.rpc<{ secret: string }>('serviceAccounts.createKey', { id });
  const clusters = (url: string) => statusOf(`${url}/api/v1/clusters`, { headers: { 'x-api-key': secret } });
  t.is(await clusters(away.url), 200);
  await home.client.rpc('serviceAccounts.update', { id, scopes: [] });
  t.is(await clusters(away.url), 403);
  await home.client.rpc('serviceAccounts.update', { id, scopes: ['clusters:read'] });
  t.is(await clusters(away.url), 200);
});

// Links that are down ---------------------------------------------------------------------------------------------------

const BOTH: readonly (() => Promise<Ending>)[] = [
  ENDINGS['a revoked access key']!,
  ENDINGS['a session that was signed out']!,
];

test.serial('Redis has no part in it: flushed, or out of reach', async (t) => {
  const redis = new Redis(home.env.REDIS_URL!);
  try {
    for (const make of BOTH) {
      const flushed = await make();
      await seenEverywhere(flushed.credential);
      const names = await redis.keys(`${home.env.SVC_REDIS_PREFIX}*`);
      if (names.length > 0) await redis.del(names);
      await flushed.end();
      t.is(await flushed.credential.call(away.url), 401);
      const cut = await make();
      await seenEverywhere(cut.credential);
      redisLink.cut();
      await cut.end();
      t.is(await cut.credential.call(away.url), 401);
      redisLink.restore();
    }
  } finally {
    redisLink.restore();
    redis.disconnect();
  }
});

test.serial('a gateway that does not hear what ends asks every time, until it hears again', async (t) => {
  try {
    for (const make of BOTH) {
      const { credential, end } = await make();
      await remembers(away, credential);
      notices.cut();
      await eventually(async () => (await questionsOf(away, credential, 5)) === 5, { what: 'asking every time' });
      t.is(await credential.call(away.url), 200);
      await end();
      t.is(await credential.call(away.url), 401);
      notices.restore();
      await remembers(away, withKey('access_key', home.client.accessKey));
    }
  } finally {
    notices.restore();
  }
});

test.serial(
  'a link that died without a sign: the end is answered when that gateway, too, no longer remembers',
  async (t) => {
    for (const make of BOTH) {
      const { credential, end } = await make();
      await remembers(away, credential);
      notices.freeze();
      await end();
      t.is(await credential.call(away.url), 401);
      notices.restore();
      await remembers(away, withKey('access_key', home.client.accessKey));
    }
  },
);

test.serial('what ends while a gateway is out of touch is not remembered when it is back', async (t) => {
  const { credential, end } = await accessKey();
  await remembers(away, credential);
  notices.cut();
  const ended = end();
  notices.restore();
  await ended;
  await remembers(away, withKey('access_key', home.client.accessKey));
  t.is(await credential.call(away.url), 401);
});

test.serial('a gateway that was killed holds nothing up for good', async (t) => {
  const third = await gateway();
  try {
    const { credential, end } = await accessKey();
    t.is(await credential.call(third.url), 200);
    await third.kill();
    await end();
    t.is(await credential.call(away.url), 401);
  } finally {
    await third.stop();
  }
});
