// kill −9 of the worker of orders at each step of an order: when what the step found was written, and when it was not,
// because the process died with the authority's answer. The next process goes on with the same order, after an hour for one
// half of them, and one certificate comes of it. Orders stand where a trigger asks for a lock that the test holds.
import { X509Certificate } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import pg from 'pg';
import { type AcmeCluster, orderOver, requestOf, startAcmeCluster } from '../helpers/acme-cluster.ts';
import { startTestConsole, startTestConsoleProcess, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api } from '../helpers/resources.ts';
import { StandingWrites, stand } from '../helpers/standing-writes.ts';
import { withoutJobs } from '../helpers/without-jobs.ts';

/** What is being written: the state that follows the step, or that the authority was asked to look. */
const WRITES = [
  'account',
  'order',
  'challenges',
  'present',
  'propagate',
  'validate',
  'asked',
  'finalize',
  'download',
  'done',
] as const;
const FATES = ['lost', 'written'] as const;
/** While these are written, no other order of the cluster shows or takes away answers: they stand last. */
const ALONE: ReadonlySet<string> = new Set(['propagate', 'done']);
/** As many as a worker walks at a time. */
const AT_A_TIME = 3;

// An order for `lost-STATE.…` stands before that state is written, one for `written-STATE.…` while it is committed.
const TRIGGERS = `
  create function stage_of(acme_order) returns text language sql immutable as
    $$ select case when $1.authorizations->0->>'state' = 'asked' then 'asked' else $1.state end $$;
  create function stand_order() returns trigger language plpgsql as $$ begin
    if stage_of(old) <> stage_of(new) and new.names[1] = tg_argv[0] || '-' || stage_of(new) || '.example.org' then
      ${stand('new.names[1]')}
    end if;
    return new;
  end $$;
  create trigger stand_lost before update on acme_order for each row execute function stand_order('lost');
  create constraint trigger stand_written after update on acme_order deferrable initially deferred
    for each row execute function stand_order('written')`;

let home: TestConsole;
let api: Api;
let cluster: AcmeCluster;
let database: pg.Pool;

test.before(async () => {
  home = await startTestConsole({ env: withoutJobs() });
  api = new Api(home);
  cluster = await startAcmeCluster(home, api);
  database = new pg.Pool({ connectionString: home.databaseUrl, max: 4 });
  await database.query(TRIGGERS);
});

test.after.always(async () => {
  await cluster?.stop();
  await database?.end();
  await home?.stop();
});

/** The process that works on orders. */
const startWorker = () =>
  startTestConsoleProcess({
    database: { url: home.databaseUrl },
    masterKey: home.env.SVC_MASTER_KEY!,
    redisPrefix: home.env.SVC_REDIS_PREFIX!,
    setUp: false,
    env: { SERVICES: 'housekeeping' },
  });

interface Asked {
  name: string;
  fate: (typeof FATES)[number];
  writes: (typeof WRITES)[number];
  siteId: string;
  certificateId: string;
}

/** In which nobody works on the orders, and nodes forget what ended. */
async function hourPasses(orders: readonly Asked[]): Promise<void> {
  const names = orders.map(({ name }) => name);
  const ids = orders.map(({ certificateId }) => certificateId);
  const hour = "interval '1 hour'";
  await database.query(
    `update acme_order set step_at = step_at - ${hour}, next_at = next_at - ${hour} where certificate_id = any($1)`,
    [ids],
  );
  await database.query(`update acme_token set expires_at = expires_at - ${hour} where host = any($1)`, [names]);
  for (const key of cluster.node.answers.keys()) {
    if (names.includes(key.split(' ')[0]!)) cluster.node.answers.delete(key);
  }
}

/** Asks for certificates, and kills the worker when each order stands. */
async function killEach(t: ExecutionContext, points: readonly Pick<Asked, 'fate' | 'writes'>[]): Promise<Asked[]> {
  const writing = await StandingWrites.open(home.databaseUrl);
  const worker = await startWorker();
  try {
    const asked: Asked[] = [];
    for (const { fate, writes } of points) {
      const name = `${fate}-${writes}.example.org`;
      await writing.hold(name);
      const { id: siteId } = await api.site(cluster.clusterId, name);
      const { id } = await api.ok('POST', '/certificates/request', requestOf([name], { bindSiteId: siteId }));
      asked.push({ name, fate, writes, siteId, certificateId: id });
      await writing.all(asked.map((each) => each.name));
    }
    await worker.kill();
    await writing.decide(
      asked.map(({ name }) => name),
      asked.flatMap(({ fate, name }) => (fate === 'lost' ? [name] : [])),
    );
    for (const { name, fate, writes, certificateId } of asked) {
      const { state } = await eventually(async () => {
        const row = await database.query('select stage_of(o) as state from acme_order o where certificate_id = $1', [
          certificateId,
        ]);
        return (fate === 'lost' || row.rows[0].state === writes) && row.rows[0];
      });
      t.is(state === writes, fate === 'written', name);
    }
    await hourPasses(asked.filter(({ fate }) => fate === 'written'));
    return asked;
  } finally {
    await worker.stop();
    await writing.close();
  }
}

async function endedWell(t: ExecutionContext, { name, fate, writes, siteId, certificateId }: Asked): Promise<void> {
  const over = await orderOver(api, certificateId);
  t.is(over.state, 'done', `${name}: ${JSON.stringify(over)}`);
  const { authority, clusterId } = cluster;
  const issued = authority.issued.filter(({ names }) => names.includes(name));
  t.is(issued.length, 1, name);
  const { fingerprint } = await api.ok('GET', `/certificates/${certificateId}`);
  t.is(new X509Certificate(issued[0]!.pem).fingerprint256.replaceAll(':', '').toLowerCase(), fingerprint, name);
  // The address of an order that was lost is nowhere: the authority forgets it, and signs nothing for it.
  const orders = authority.ordered.filter((names) => names.includes(name)).length;
  t.is(orders, fate === 'lost' && writes === 'challenges' ? 2 : 1, name);
  t.is((await api.ok('GET', `/sites/${siteId}/https`)).settings.certificateId, certificateId, name);
  await eventually(async () => (await api.entries(clusterId, 'site-https')).includes(siteId), {
    everyMs: 200,
    what: `${name} at the nodes`,
  });
  const row = await api.sql('acme_order').where({ certificate_id: certificateId }).first();
  t.is(row.private_key, null, name);
}

test.serial('whenever the worker dies, the next one goes on, and one certificate comes of it', async (t) => {
  const points = WRITES.flatMap((writes) => FATES.map((fate) => ({ fate, writes })));
  const [alone, others] = [true, false].map((is) => points.filter(({ writes }) => ALONE.has(writes) === is));
  const all: Asked[] = [];
  while (others!.length > 0) {
    const last = alone!.splice(0, 1);
    all.push(...(await killEach(t, [...others!.splice(0, AT_A_TIME - last.length), ...last])));
  }
  t.is(all.length, points.length);
  const worker = await startWorker();
  try {
    for (const asked of all) await endedWell(t, asked);
    t.is(cluster.authority.accounts.size, 1);
    await eventually(() => cluster.node.answers.size === 0);
  } finally {
    await worker.stop();
  }
});
