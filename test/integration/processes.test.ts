// Console processes: how they start, refuse to start, work together, lose what they depend on, stop and die.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { promisify } from 'node:util';
import test from 'ava';
import pg from 'pg';
import type { ConsoleClient } from '../../bin/lib/console-client.ts';
import { root } from '../../bin/lib/root.ts';
import { createLog } from '../../runtime/log.ts';
import { startConsole } from '../../services/start-console.ts';
import { startTestConsole, startTestConsoleProcess, type TestConsoleOptions } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { WAITS_FOR_THIS_SESSION } from '../helpers/lock-waits.ts';
import { createTestDatabase, redisPrefix, servers } from '../helpers/servers.ts';
import { type TcpProxy, tcpProxy, throughProxy } from '../helpers/tcp-proxy.ts';

interface ErrorBody {
  code: string;
  data: Record<string, unknown>;
}

const run = promisify(execFile);

async function query<T extends pg.QueryResultRow>(url: string, sql: string, values: unknown[] = []): Promise<T[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<T>(sql, values)).rows;
  } finally {
    await client.end();
  }
}

/** A process that is expected not to start. */
async function refusedStart(env: Record<string, string>): Promise<{ code: number; stderr: string; stdout: string }> {
  try {
    await run(process.execPath, [join(root, 'bin/console.ts')], {
      env: { PATH: process.env.PATH, ...env },
      timeout: 60_000,
    });
  } catch (error) {
    return error as { code: number; stderr: string; stdout: string };
  }
  throw new Error('the console ended without an error');
}

/** An empty database, not even migrated. */
async function emptyDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const { databaseUrl } = await servers();
  const name = `empty_${randomBytes(6).toString('hex')}`;
  await query(databaseUrl, `create database ${name}`);
  const url = new URL(databaseUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: async () => {
      await query(databaseUrl, `drop database if exists ${name} with (force)`);
    },
  };
}

/** The environment of a console that the helpers do not start. */
async function consoleEnv(databaseUrl: string): Promise<Record<string, string>> {
  return {
    DATABASE_URL: databaseUrl,
    REDIS_URL: (await servers()).redisUrl,
    SVC_REDIS_PREFIX: redisPrefix(),
    SVC_MASTER_KEY: randomBytes(32).toString('base64'),
    SVC_PUBLIC_URL: 'http://localhost:3000',
    HOST: '127.0.0.1',
    PORT: '0',
    NODE_API_HOST: '127.0.0.1',
    NODE_API_PORT: '0',
    METRICS_PORT: '0',
    LOG_LEVEL: 'warn',
  };
}

const logged = (log: string) =>
  log
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);

// Start ---------------------------------------------------------------------------------------------------------------

// Serial: each starts consoles of its own, and their connections add up.
test.serial('a process without its variables names each of them and ends with 1', async (t) => {
  const { code, stderr } = await refusedStart({
    NODE_ENV: 'production',
    PORT: 'web',
    SVC_PUBLIC_URL: 'http://localhost',
  });
  t.is(code, 1);
  for (const name of ['DATABASE_URL', 'SVC_MASTER_KEY', 'SVC_PUBLIC_URL', 'PORT']) t.true(stderr.includes(name), name);
});

test.serial('SERVICES with a name that is no service refuses the start and lists the services', async (t) => {
  const { code, stderr } = await refusedStart({
    DATABASE_URL: 'postgres://127.0.0.1:1/x',
    SVC_MASTER_KEY: randomBytes(32).toString('base64'),
    SVC_PUBLIC_URL: 'http://localhost:3000',
    SERVICES: 'clusters,unknown-service',
  });
  t.is(code, 1);
  t.true(stderr.includes('unknown-service') && stderr.includes('api-gateway'));
});

test.serial('a database written under another master key stops the start and is left alone', async (t) => {
  const first = await startTestConsole();
  try {
    const state = () => query(first.databaseUrl, 'select * from console_state');
    const before = await state();
    const another = { database: { url: first.databaseUrl }, masterKey: randomBytes(32).toString('base64') };
    await t.throwsAsync(startTestConsole(another), { message: /SVC_MASTER_KEY/ });
    t.deepEqual(await state(), before);
  } finally {
    await first.stop();
  }
});

test.serial('an occupied port stops the start with its address', async (t) => {
  const first = await startTestConsole({ setUp: false });
  try {
    const port = String(first.running.web!.port);
    const metrics = String(first.running.metrics.port);
    const same: TestConsoleOptions = {
      database: { url: first.databaseUrl },
      masterKey: first.env.SVC_MASTER_KEY!,
      setUp: false,
    };
    await t.throwsAsync(startTestConsole({ ...same, env: { PORT: port } }), {
      message: new RegExp(`${port}.*EADDRINUSE`),
    });
    await t.throwsAsync(startTestConsole({ ...same, env: { METRICS_PORT: metrics } }), {
      message: new RegExp(metrics),
    });
    t.is((await first.client.request('GET', '/healthz')).status, 200);
  } finally {
    await first.stop();
  }
});

test.serial('the setup token is the same at every start, logged with its address, and gone after setup', async (t) => {
  const database = await createTestDatabase();
  const shared = { database: { url: database.url }, masterKey: randomBytes(32).toString('base64'), setUp: false };
  try {
    const tokens: unknown[] = [];
    for (let start = 0; start < 2; start++) {
      const running = await startTestConsoleProcess(shared);
      const line = logged(running.log()).find((entry) => entry.setupToken);
      t.is(line?.url, 'http://localhost:3000/setup');
      tokens.push(line?.setupToken);
      await running.stop();
    }
    t.truthy(tokens[0]);
    t.is(tokens[0], tokens[1]);
    const stored = JSON.stringify(await query(database.url, 'select * from console_state'));
    t.false(stored.includes(String(tokens[0])));
    const third = await startTestConsoleProcess({ ...shared, setUp: true });
    await third.stop();
    const fourth = await startTestConsoleProcess(shared);
    t.is(fourth.setupToken, null);
    t.false(fourth.log().includes(String(tokens[0])));
    await fourth.stop();
  } finally {
    await database.drop();
  }
});

test.serial('a start waits for a database that is not there yet, and says so', async (t) => {
  const database = await createTestDatabase();
  const link = await tcpProxy(database.url, { open: false });
  t.teardown(async () => {
    await link.close();
    await database.drop();
  });
  const env = await consoleEnv(throughProxy(database.url, link));
  const messages: string[] = [];
  const destination = new Writable({
    write(line, _encoding, done) {
      const { msg } = JSON.parse(String(line)) as { msg: string };
      messages.push(msg);
      if (msg === 'console waits for the database') link.restore();
      done();
    },
  });
  const running = await startConsole(env, { log: createLog('info', destination) });
  await running.stop();
  t.true(messages.includes('console waits for the database'));
  t.true(messages.indexOf('console waits for the database') < messages.indexOf('console started'));
});

test.serial('several instances that start together migrate once and share one history and setup token', async (t) => {
  const database = await emptyDatabase();
  const env = await consoleEnv(database.url);
  const consoles = await Promise.all(Array.from({ length: 4 }, () => startConsole(env)));
  try {
    t.is(new Set(consoles.map(({ setupToken }) => setupToken)).size, 1);
    t.is((await query(database.url, 'select 1 from console_state')).length, 1);
    t.is((await query(database.url, 'select 1 from certificate_authority')).length, 1);
    const names = (await query<{ name: string }>(database.url, 'select name from migration')).map(({ name }) => name);
    t.is(new Set(names).size, names.length);
  } finally {
    await Promise.all(consoles.map((running) => running.stop()));
    await database.drop();
  }
});

// Roles ---------------------------------------------------------------------------------------------------------------

test.serial('each role serves what it is for, and all tell whether they are ready', async (t) => {
  const all = await startTestConsole();
  const shared = {
    database: { url: all.databaseUrl },
    masterKey: all.env.SVC_MASTER_KEY!,
    redisPrefix: all.env.SVC_REDIS_PREFIX!,
  };
  const roles = await Promise.all(
    ['app', 'worker', 'channel'].map((role) => startTestConsole({ ...shared, setUp: false, env: { ROLE: role } })),
  );
  try {
    const [app, worker, channel] = roles;
    t.truthy(app!.running.web);
    t.is(worker!.running.web, null);
    t.is(channel!.running.web, null);
    t.is(worker!.running.nodeChannel, null);
    for (const running of [all, ...roles]) {
      const ready = await fetch(`${running.metricsUrl}/readyz`);
      t.is(ready.status, 200);
      t.like(await ready.json(), { ready: true, database: true, redis: true, role: running.env.ROLE ?? 'all' });
      t.is((await fetch(`${running.metricsUrl}/livez`)).status, 200);
      t.is((await fetch(`${running.metricsUrl}/other`)).status, 404);
      const metrics = await (await fetch(`${running.metricsUrl}/metrics`)).text();
      for (const name of ['process_cpu_seconds_total', 'svc_redis_up 1', 'svc_database_pool_connections']) {
        t.true(metrics.includes(name), name);
      }
      t.is(metrics.includes('svc_gateway_requests_total'), running.running.web !== null);
    }
  } finally {
    await Promise.all(roles.map((running) => running.stop()));
    await all.stop();
  }
});

test.serial('services in several processes answer as one; errors and changes cross with their data', async (t) => {
  const web = await startTestConsole({
    env: { SERVICES: 'api-gateway,auth,access-keys,account,system' },
  });
  const shared = {
    database: { url: web.databaseUrl },
    masterKey: web.env.SVC_MASTER_KEY!,
    redisPrefix: web.env.SVC_REDIS_PREFIX!,
    setUp: false,
    env: { SERVICES: 'clusters,settings' },
  };
  const key = { 'x-api-key': web.client.accessKey };
  let other = await startTestConsoleProcess(shared);
  try {
    const list = () => web.client.request<ErrorBody>('GET', '/api/v1/clusters', undefined, key);
    await eventually(async () => (await list()).status === 200, { what: 'an answer from the other process' });
    const created = await web.client.request<{ id: string }>('POST', '/api/v1/clusters', { name: 'remote' }, key);
    t.is(created.status, 201);
    t.regex(created.headers.get('x-svc-change') ?? '', new RegExp(`^${created.body.id}=1$`));
    const taken = await web.client.request<ErrorBody>('POST', '/api/v1/clusters', { name: 'remote' }, key);
    t.like(taken, { status: 409, body: { code: 'CLUSTER_NAME_TAKEN', data: { name: 'remote' } } });
    const invalid = await web.client.request<ErrorBody>('POST', '/api/v1/clusters', { name: 'X' }, key);
    t.is(invalid.status, 400);
    t.is((invalid.body.data.issues as { path: string }[])[0]?.path, '/name');

    await other.kill();
    const gone = await eventually(
      async () => {
        const answer = await list();
        return answer.status === 200 ? undefined : answer;
      },
      { what: 'the refusal' },
    );
    t.is(gone.status, 503);
    t.is(gone.body.code, 'SERVICE_UNAVAILABLE');
    t.is(gone.headers.get('retry-after'), '1');
    t.is((await web.client.request('GET', '/api/v1/me', undefined, key)).status, 200);
    await other.stop();

    other = await startTestConsoleProcess(shared);
    await eventually(async () => (await list()).status === 200, { what: 'an answer from the new process' });
  } finally {
    await other.stop();
    await web.stop();
  }
});

// Losing what it depends on -------------------------------------------------------------------------------------------

async function consoleBehindProxies(t: { teardown(work: () => Promise<void>): void }) {
  const { redisUrl } = await servers();
  const database = await createTestDatabase();
  const databaseLink = await tcpProxy(database.url);
  const redisLink = await tcpProxy(redisUrl);
  const running = await startTestConsole({
    database: { url: throughProxy(database.url, databaseLink) },
    env: { REDIS_URL: throughProxy(redisUrl, redisLink), LOG_LEVEL: 'fatal' },
  });
  t.teardown(async () => {
    await running.stop();
    await databaseLink.close();
    await redisLink.close();
    await database.drop();
  });
  return { running, databaseLink, redisLink, key: { 'x-api-key': running.client.accessKey } };
}

test.serial(
  'without the database the answer is 503 with a hint, unready but alive, and all is well afterwards',
  async (t) => {
    const { running, databaseLink, key } = await consoleBehindProxies(t);
    const me = () => running.client.request<ErrorBody>('GET', '/api/v1/me', undefined, key);
    t.is((await me()).status, 200);
    databaseLink.cut();
    for (const [method, path, body] of [
      ['GET', '/api/v1/me', undefined],
      ['GET', '/api/v1/clusters', undefined],
      ['POST', '/api/v1/clusters', { name: 'lost' }],
      ['GET', '/api/v1/system/status', undefined],
    ] as const) {
      const answer = await running.client.request<ErrorBody>(method, path, body, key);
      t.is(answer.status, 503, path);
      t.is(answer.body.code, 'SERVICE_UNAVAILABLE', path);
      t.truthy(answer.headers.get('retry-after'), path);
    }
    t.is((await running.client.request('GET', '/healthz')).status, 200);
    t.is((await fetch(`${running.metricsUrl}/readyz`)).status, 503);
    t.is((await fetch(`${running.metricsUrl}/livez`)).status, 200);
    databaseLink.restore();
    await eventually(async () => (await me()).status === 200, { what: 'the way back' });
    await eventually(async () => (await fetch(`${running.metricsUrl}/readyz`)).status === 200, { what: 'readiness' });
  },
);

test.serial('without Redis requests are answered and changes are saved; readiness tells', async (t) => {
  const { running, redisLink, key } = await consoleBehindProxies(t);
  redisLink.cut();
  t.is((await running.client.request('GET', '/api/v1/me', undefined, key)).status, 200);
  t.is((await running.client.request('POST', '/api/v1/clusters', { name: 'saved' }, key)).status, 201);
  t.like(await (await fetch(`${running.metricsUrl}/readyz`)).json(), { ready: true, redis: false });
  redisLink.restore();
  await eventually(async () => {
    const ready = (await (await fetch(`${running.metricsUrl}/readyz`)).json()) as { redis: boolean };
    return ready.redis;
  });
});

/** A gateway and a service in different processes; `remote` asks for the service. */
async function twoProcesses(t: { teardown(work: () => Promise<void>): void }) {
  const { redisUrl } = await servers();
  const link: TcpProxy = await tcpProxy(redisUrl);
  t.teardown(() => link.close());
  const env = { REDIS_URL: throughProxy(redisUrl, link), LOG_LEVEL: 'fatal' };
  const web = await startTestConsole({
    env: { ...env, SERVICES: 'api-gateway,auth,access-keys,account,system,clusters' },
  });
  t.teardown(() => web.stop());
  const shared = {
    database: { url: web.databaseUrl },
    masterKey: web.env.SVC_MASTER_KEY!,
    redisPrefix: web.env.SVC_REDIS_PREFIX!,
    setUp: false,
  };
  const other = await startTestConsole({ ...shared, env: { ...env, SERVICES: 'settings' } });
  t.teardown(() => other.stop());
  const key = { 'x-api-key': web.client.accessKey };
  const remote = () => web.client.request<ErrorBody>('GET', '/api/v1/settings', undefined, key);
  await eventually(async () => (await remote()).status === 200, { what: 'an answer from the other process' });
  return { link, web, key, remote };
}

test.serial('services in several processes find each other again after Redis was away', async (t) => {
  const { link, web, key, remote } = await twoProcesses(t);
  link.cut();
  t.is((await remote()).status, 503);
  t.is((await web.client.request('GET', '/api/v1/clusters', undefined, key)).status, 200);
  link.restore();
  await eventually(async () => (await remote()).status === 200, { what: 'an answer after the break' });
});

test.serial('a link to Redis that died without a word is replaced', async (t) => {
  const { link, remote } = await twoProcesses(t);
  link.freeze();
  await eventually(async () => (await remote()).status === 503, { what: 'the refusal' });
  await eventually(async () => (await remote()).status === 200, { what: 'an answer over new links' });
  t.is((await remote()).status, 200);
});

// Stop and death ------------------------------------------------------------------------------------------------------

test.serial('SIGTERM lets a running request end, accepts no other and ends with 0', async (t) => {
  const running = await startTestConsoleProcess();
  const lock = new pg.Client({ connectionString: running.databaseUrl });
  await lock.connect();
  try {
    await lock.query('begin');
    await lock.query('lock table cluster in access exclusive mode');
    const headers = { 'x-api-key': running.client.accessKey };
    const pending = running.client.request('GET', '/api/v1/clusters', undefined, headers);
    await eventually(async () => {
      const waiting = await lock.query(WAITS_FOR_THIS_SESSION);
      return (waiting.rowCount ?? 0) > 0;
    });
    process.kill(running.child.pid, 'SIGTERM');
    await eventually(() => logged(running.log()).some((line) => line.msg === 'console stopping'));
    await eventually(async () => {
      try {
        await running.client.request('GET', '/healthz');
        return false;
      } catch {
        return true;
      }
    });
    await lock.query('rollback');
    t.is((await pending).status, 200);
    t.like(await running.child.ended, { code: 0 });
    t.true(logged(running.log()).some((line) => line.msg === 'console stopped'));
  } finally {
    await lock.end();
    await running.stop();
  }
});

test.serial('nothing secret is logged, at the most talkative level', async (t) => {
  const running = await startTestConsoleProcess({ env: { LOG_LEVEL: 'trace' } });
  await running.client.request('POST', '/api/auth/sign-in/email', {
    email: 'a@example.com',
    password: 'hunter2-hunter2',
  });
  await running.client.api('GET', '/me');
  await running.client.createKey('second');
  const text = running.log();
  await running.stop();
  for (const secret of [
    running.client.accessKey,
    running.client.cookie.split('=')[1] as string,
    running.env.SVC_MASTER_KEY!,
    'hunter2-hunter2',
    'correct horse battery staple',
  ]) {
    t.false(text.includes(secret), secret.slice(0, 4));
  }
  for (const line of text.split('\n').filter((line) => line !== '')) t.notThrows(() => JSON.parse(line), line);
});

test.serial(
  'kill −9 amid requests with idempotency keys: each repeats until it is done, and has happened once',
  async (t) => {
    const database = await createTestDatabase();
    const shared = {
      database: { url: database.url },
      masterKey: randomBytes(32).toString('base64'),
      redisPrefix: redisPrefix(),
    };
    let running = await startTestConsoleProcess(shared);
    const { accessKey } = running.client;
    const names = Array.from({ length: 60 }, (_, index) => `cluster-${index}`);
    const create = (client: ConsoleClient, name: string) =>
      client.request<{ id: string }>(
        'POST',
        '/api/v1/clusters',
        { name },
        { 'x-api-key': accessKey, 'idempotency-key': name },
      );
    try {
      const confirmed = new Map<string, string>();
      for (let death = 0; death < 3; death++) {
        const missing = names.filter((name) => !confirmed.has(name));
        let answered = 0;
        let killed: Promise<void> | undefined;
        const { client } = running;
        await Promise.all(
          missing.map(async (name) => {
            try {
              const answer = await create(client, name);
              if (answer.status === 201) confirmed.set(name, answer.body.id);
            } catch {
              // The connection broke: nobody knows whether it happened.
            }
            answered++;
            if (answered === 10) killed = running.kill();
          }),
        );
        await (killed ?? running.kill());
        running = await startTestConsoleProcess(shared);
        // What the dead process was doing counts as interrupted after ten minutes.
        await query(
          database.url,
          `update idempotency_record set started_at = now() - interval '11 minutes' where state = 'running'`,
        );
      }
      for (const name of names) {
        const answer = await create(running.client, name);
        t.is(answer.status, 201, name);
        if (confirmed.has(name)) {
          t.is(answer.body.id, confirmed.get(name)!, name);
          t.is(answer.headers.get('idempotent-replayed'), 'true', name);
        }
      }
      const rows = await query<{ name: string; number: string }>(
        database.url,
        `select c.name, r.number from cluster c join config_revision r on r.cluster_id = c.id where c.name like 'cluster-%'`,
      );
      t.deepEqual(rows.map(({ name }) => name).sort(), [...names].sort());
      const audits = await query(
        database.url,
        `select 1 from audit_entry where action = 'cluster.create' and target_name like 'cluster-%'`,
      );
      t.is(audits.length, names.length);
    } finally {
      await running.stop();
      await database.drop();
    }
  },
);
