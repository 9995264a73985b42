// kill −9 of the gateway, of the process that runs the action, and of a console that is both, while a request with an
// idempotency key stands at each point of its way. Afterwards the same request, sent again, is answered and has happened
// once. Requests stand where a trigger asks for a lock that the test holds.
import test, { type ExecutionContext } from 'ava';
import pg from 'pg';
import type { Answer } from '../../bin/lib/console-client.ts';
import {
  startTestConsole,
  startTestConsoleProcess,
  type TestConsole,
  type TestConsoleOptions,
  type TestConsoleProcess,
} from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import type { Body } from '../helpers/resources.ts';

const POINTS = ['before the claim', 'after the claim', 'in the transaction', 'after the commit'] as const;
const LOCK = 4711;

// A request stands at point n when its key begins with `kill-n-`. Bounds on locks and transactions are lifted there.
const TRIGGERS = `
  create function stand(point int, name text) returns void language plpgsql as $$ begin
    if name like 'kill-' || point || '-%' then
      perform set_config('lock_timeout', '0', true), set_config('transaction_timeout', '0', true);
      perform pg_advisory_xact_lock_shared(${LOCK}, point);
    end if;
  end $$;
  create function stand_row() returns trigger language plpgsql as
    $$ begin perform stand(tg_argv[0]::int, to_jsonb(new)->>tg_argv[1]); return new; end $$;
  create trigger stand_0 before insert on idempotency_record for each row execute function stand_row(0, 'key');
  create trigger stand_1 before insert on site for each row execute function stand_row(1, 'name');
  create trigger stand_2 before update on idempotency_record for each row when (new.state = 'done')
    execute function stand_row(2, 'key');
  create constraint trigger stand_3 after update on idempotency_record deferrable initially deferred
    for each row when (new.state = 'done') execute function stand_row(3, 'key')`;

let home: TestConsole;
let shared: TestConsoleOptions;
let database: pg.Pool;

test.before(async () => {
  home = await startTestConsole({ env: { SERVICES: 'api-gateway,auth,access-keys,account,system,clusters' } });
  shared = {
    database: { url: home.databaseUrl },
    masterKey: home.env.SVC_MASTER_KEY!,
    redisPrefix: home.env.SVC_REDIS_PREFIX!,
    setUp: false,
  };
  database = new pg.Pool({ connectionString: home.databaseUrl, max: 4 });
  await database.query(TRIGGERS);
});

test.after.always(async () => {
  await database?.end();
  await home?.stop();
});

const start = (services: string) => startTestConsoleProcess({ ...shared, env: { SERVICES: services } });

const clusters = new Map<string, string>();

/** A site in a cluster of its own, so that nothing but the tested points keeps one request waiting for another. */
async function create({ client }: TestConsoleProcess, name: string): Promise<Answer<Body> | null> {
  if (!clusters.has(name)) {
    const { id } = await home.client.api<{ id: string }>('POST', '/clusters', { name: `of-${name}` });
    clusters.set(name, id);
  }
  const clusterId = clusters.get(name);
  const body = { name, clusterId, domains: [`${name}.example`], origins: [{ address: 'origin.example' }] };
  const headers = { 'x-api-key': home.client.accessKey, 'idempotency-key': name };
  // No answer when the connection breaks.
  return client.request<Body>('POST', '/api/v1/sites', body, headers).catch(() => null);
}

/** Processes find each other after a while. */
const reaches = ({ client }: TestConsoleProcess) =>
  eventually(
    async () => {
      const headers = { 'x-api-key': home.client.accessKey };
      return (await client.request('GET', '/api/v1/sites', undefined, headers)).status === 200;
    },
    { what: 'the gateway to reach the services' },
  );

/** Sends a request for each point and waits until all stand. */
async function standAtEachPoint(t: ExecutionContext, gateway: TestConsoleProcess, word: string) {
  await reaches(gateway);
  // New sites share the body of an entry; the first that writes it would keep the others waiting.
  await create(gateway, `first-${word}`);
  const holder = new pg.Client({ connectionString: home.databaseUrl });
  await holder.connect();
  t.teardown(() => holder.end());
  for (const point of POINTS.keys()) await holder.query('select pg_advisory_lock($1, $2)', [LOCK, point]);
  const names = POINTS.map((_, point) => `kill-${point}-${word}`);
  const answers = Promise.all(names.map((name) => create(gateway, name)));
  await eventually(
    async () => {
      const { rows } = await holder.query(
        `select distinct objid from pg_locks where locktype = 'advisory' and classid = $1 and not granted`,
        [LOCK],
      );
      return rows.length === POINTS.length;
    },
    { what: 'a request at each point' },
  );
  const goOn = () => holder.query('select pg_advisory_unlock_all()');
  return { names, answers, goOn };
}

/** Nobody is in a transaction any more that a process under test began. */
const quiet = () =>
  eventually(
    async () => {
      const { rowCount } = await database.query(
        `select 1 from pg_stat_activity where datname = current_database() and xact_start is not null
           and pid <> pg_backend_pid()`,
      );
      return rowCount === 0;
    },
    { what: 'the end of all transactions' },
  );

/** Sends the request again until it is done; whether that answer was a replay. */
async function retry(t: ExecutionContext, gateway: TestConsoleProcess, name: string): Promise<boolean> {
  const done = await eventually(
    async () => {
      const answer = await create(gateway, name);
      if (answer?.status === 201) return answer;
      if (answer?.status === 409) {
        t.is(answer.body.code, 'IDEMPOTENCY_IN_PROGRESS', name);
        // Ten minutes later.
        await database.query(
          `update idempotency_record set started_at = now() - interval '11 minutes' where key = $1 and state = 'running'`,
          [name],
        );
      }
      return undefined;
    },
    { timeoutMs: 60_000, what: `${name} to be done` },
  );
  t.is(done.headers.get('x-svc-change'), `${clusters.get(name)}=${done.body.revision}`, name);
  return done.headers.get('idempotent-replayed') === 'true';
}

async function happenedOnce(t: ExecutionContext, name: string): Promise<void> {
  for (const sql of [
    'select 1 from site where name = $1',
    `select 1 from audit_entry where action = 'site.create' and target_name = $1`,
    `select 1 from config_revision r join cluster c on c.id = r.cluster_id and c.name = 'of-' || $1
      where r.reason = 'site_created'`,
    `select 1 from idempotency_record where key = $1 and state = 'done'`,
  ]) {
    t.is((await database.query(sql, [name])).rowCount, 1, `${name}: ${sql}`);
  }
}

test.serial(
  'the gateway dies: what the other process began ends as if nothing had been, and is replayed',
  async (t) => {
    const worker = await start('sites');
    let gateway = await start('api-gateway');
    try {
      const { names, answers, goOn } = await standAtEachPoint(t, gateway, 'gateway');
      await gateway.kill();
      t.deepEqual(await answers, [null, null, null, null]);
      await goOn();
      await quiet();
      await gateway.stop();
      gateway = await start('api-gateway');
      const replayed: boolean[] = [];
      for (const name of names) replayed.push(await retry(t, gateway, name));
      t.deepEqual(replayed, [false, true, true, true]);
      for (const name of names) await happenedOnce(t, name);
    } finally {
      await gateway.stop();
      await worker.stop();
    }
  },
);

test.serial(
  'the process of the action dies: the response of what was committed, else 503; sent again the request runs, or is replayed',
  async (t) => {
    const gateway = await start('api-gateway');
    let worker = await start('sites');
    try {
      const { names, answers, goOn } = await standAtEachPoint(t, gateway, 'worker');
      await worker.kill();
      await goOn();
      await quiet();
      const statuses = (await answers).map((answer) => answer?.status);
      t.deepEqual(statuses, [503, 503, 503, 201]);
      await worker.stop();
      worker = await start('sites');
      const replayed: boolean[] = [];
      for (const name of names) replayed.push(await retry(t, gateway, name));
      t.deepEqual(replayed, [false, false, false, true]);
      for (const name of names) await happenedOnce(t, name);
    } finally {
      await worker.stop();
      await gateway.stop();
    }
  },
);

test.serial('a console that is both dies: sent again the request runs, or is replayed once committed', async (t) => {
  let both = await startTestConsoleProcess(shared);
  try {
    const { names, answers, goOn } = await standAtEachPoint(t, both, 'both');
    await both.kill();
    t.deepEqual(await answers, [null, null, null, null]);
    await goOn();
    await quiet();
    await both.stop();
    both = await startTestConsoleProcess(shared);
    const replayed: boolean[] = [];
    for (const name of names) replayed.push(await retry(t, both, name));
    t.deepEqual(replayed, [false, false, false, true]);
    for (const name of names) await happenedOnce(t, name);
  } finally {
    await both.stop();
  }
});

test.serial('an attempt that was taken over is fenced: it ends without effect, however late', async (t) => {
  const worker = await start('sites');
  const gateways = [await start('api-gateway'), await start('api-gateway')];
  const holder = new pg.Client({ connectionString: home.databaseUrl });
  await holder.connect();
  t.teardown(() => holder.end());
  try {
    for (const gateway of gateways) await reaches(gateway);
    const name = 'kill-1-fenced';
    await holder.query('select pg_advisory_lock($1, 1)', [LOCK]);
    const isTrue = (sql: string, values: unknown[]) =>
      eventually(async () => (await database.query(sql, values)).rowCount === 1, { what: sql });
    const first = create(gateways[0]!, name);
    await isTrue(`select 1 from pg_locks where locktype = 'advisory' and classid = $1 and not granted`, [LOCK]);
    await gateways[0]!.kill();
    await database.query(`update idempotency_record set started_at = now() - interval '11 minutes' where key = $1`, [
      name,
    ]);
    const second = create(gateways[1]!, name);
    await isTrue(`select 1 from idempotency_record where key = $1 and started_at > now() - interval '10 minutes'`, [
      name,
    ]);
    await holder.query('select pg_advisory_unlock_all()');
    t.is(await first, null);
    const answer = await second;
    // The first attempt may have had the name first; then the second one is refused or told to come again.
    if (answer?.status !== 201) await retry(t, gateways[1]!, name);
    await quiet();
    await happenedOnce(t, name);
  } finally {
    for (const gateway of gateways) await gateway.stop();
    await worker.stop();
  }
});
