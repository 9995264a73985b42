// Services in processes of their own, each killed in turn while requests go on: what was confirmed is there, once.
import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { eventually } from '../helpers/eventually.ts';
import { connectAs, enrollOne } from '../helpers/fleet.ts';
import { Caller, type ProcessName, ServicesApart } from '../helpers/services-apart.ts';

const GATEWAYS: ProcessName[] = ['front', 'gateway'];
const WRITERS = 5;
const REQUESTS = 500;
/** Between two rounds of a writer: the machine is for the faults, too. */
const PAUSE_MS = 500;

let apart: ServicesApart;

test.before(async () => {
  apart = await ServicesApart.start();
});
test.afterEach.always((t) => {
  if (!t.passed) for (const line of apart?.errors() ?? []) t.log(line);
});
test.after.always(() => apart?.stop());

const siteNamed = (name: string, clusterId: string) => ({
  name,
  clusterId,
  domains: [`${name}.example`],
  origins: [{ address: 'origin.example' }],
});
const banOf = (cidr: string) => ({ scope: 'platform', cidr, durationSeconds: 3600, reason: 'other' });

test.serial(
  'a service that runs nowhere is reported, and rejected with Retry-After while all others work',
  async (t) => {
    const caller = await Caller.create(apart, 'missing', ['front']);
    const { id: clusterId } = await caller.confirmed('POST', '/clusters', { name: 'missing' });
    const { site } = await caller.confirmed('POST', '/sites', siteNamed('missing', clusterId));
    await apart.kill('waf');
    await eventually(async () => (await apart.readiness('front')).missing.length > 0, { what: 'the loss' });
    t.like(await apart.readiness('front'), { ready: true, missing: ['waf'] });
    const metrics = await apart.metrics('front');
    t.true(metrics.includes('svc_missing_services{service="waf"} 1'));
    t.false(metrics.includes('svc_missing_services{service="bans"}'));
    const refused = (await caller.once('GET', `/sites/${site.id}/waf`))!;
    t.like(refused, { status: 503, body: { code: 'SERVICE_UNAVAILABLE' } });
    t.is(refused.headers.get('retry-after'), '1');
    for (const path of ['/me', '/bans', '/sites', '/nodes', `/sites/${site.id}/protection`])
      t.is((await caller.once('GET', path))!.status, 200, path);
    await apart.run('waf');
    await apart.complete(...GATEWAYS);
    t.is((await caller.once('GET', `/sites/${site.id}/waf`))!.status, 200);
  },
);

test.serial('a Redis that answers nothing: what needs other processes is rejected, the rest goes on', async (t) => {
  const caller = await Caller.create(apart, 'stalled', ['front']);
  const create = () => caller.once('POST', '/clusters', { name: 'stalled' }, 'stalled');
  apart.stallRedis(true);
  try {
    await eventually(async () => (await apart.readiness('front')).missing.includes('nodes'), { what: 'the silence' });
    for (const refused of [await caller.once('GET', '/nodes'), await create()]) {
      t.like(refused, { status: 503, body: { code: 'SERVICE_UNAVAILABLE' } });
      t.is(refused!.headers.get('retry-after'), '1');
    }
    t.is((await caller.once('GET', '/me'))!.status, 200);
  } finally {
    apart.stallRedis(false);
  }
  await apart.complete(...GATEWAYS);
  const { id } = await caller.confirmed('POST', '/clusters', { name: 'stalled' }, 'stalled');
  t.is((await create())!.body.id, id);
});

test.serial('a process that stands still: reads and changes with a key succeed in another one', async (t) => {
  const caller = await Caller.create(apart, 'cut-off', GATEWAYS);
  const { pid } = apart.process('moreBans').child;
  process.kill(pid, 'SIGSTOP');
  try {
    await Promise.all(
      [1, 2, 3, 4].flatMap((number) => [
        caller.once('GET', '/bans?pageSize=1'),
        caller.once('POST', '/bans', banOf(`40.0.0.${number}`), `cut-off-${number}`),
      ]),
    );
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  t.deepEqual(caller.failures, []);
  await apart.complete(...GATEWAYS);
  await eventually(async () => (await apart.readiness('moreBans')).missing.length === 0, { what: 'its return' });
  // It goes on with what it had begun, and commits nothing: each ban was created once.
  const { rows } = await apart.sql.query<{ count: number }>(
    `select count(*)::int as count from audit_entry where target_name like '40.0.0.%'`,
  );
  t.is(rows[0]!.count, 4);
});

/** Times that a gateway dropped a process that said nothing for two seconds. */
const silences = () =>
  GATEWAYS.flatMap(
    (name) =>
      apart
        .process(name)
        .log()
        .match(/ is silent/g) ?? [],
  ).length;

test.serial('more and fewer processes of a service: no request fails', async (t) => {
  const caller = await Caller.create(apart, 'scaled', GATEWAYS);
  let asked = 0;
  // A machine that gives a process no time for two seconds makes the others drop it: then nothing is shown, so again.
  for (let attempt = 1; ; attempt++) {
    const before = silences();
    caller.failures = [];
    let more = true;
    const asking = (async () => {
      for (; more; asked++) {
        await caller.once('POST', '/bans', banOf(`30.0.0.${(asked % 200) + 1}`), `scaled-${asked}`);
        await caller.once('GET', '/bans?pageSize=1');
        await delay(100);
      }
    })();
    await apart.end('moreBans');
    await Promise.all([apart.run('moreBans'), apart.run('thirdBans')]);
    await apart.complete(...GATEWAYS);
    await Promise.all([apart.end('moreBans'), apart.end('thirdBans')]);
    const scaled = asked;
    await eventually(() => asked >= scaled + 5, { what: 'requests to the process that is left' });
    more = false;
    await asking;
    await apart.run('moreBans');
    await apart.complete(...GATEWAYS);
    if (caller.failures.length === 0 || silences() === before || attempt === 3) break;
  }
  t.deepEqual(caller.failures, []);
});

test.serial(
  'kill −9 of each process, Redis away and a process cut off: what was confirmed is there, once',
  async (t) => {
    t.timeout(600_000);
    const admin = await Caller.create(apart, 'admin', ['front']);
    const { id: clusterId } = await admin.confirmed('POST', '/clusters', { name: 'apart' });
    const bans = new Set<string>();
    const sites = new Map<string, string>();
    let asked = 0;
    let faults = true;
    const writer = async (number: number) => {
      const caller = await Caller.create(apart, `writer-${number}`, GATEWAYS);
      const ask: Caller['confirmed'] = (...request) => {
        asked++;
        return caller.confirmed(...request);
      };
      for (let step = 0; faults || asked < REQUESTS; step++) {
        const name = `apart-${number}-${step}`;
        const address = `20.${number}.${step >> 8}.${step & 255}`;
        await ask('POST', '/bans', banOf(address), `ban-${name}`);
        bans.add(address);
        if (step % 4 === 0) {
          const { site } = await ask('POST', '/sites', siteNamed(name, clusterId), `site-${name}`);
          await ask('PATCH', `/sites/${site.id}/protection`, { underAttack: true }, `protect-${name}`);
          await ask('PATCH', `/sites/${site.id}/waf`, { mode: 'detect' }, `waf-${name}`);
          sites.set(name, site.id);
        }
        await ask('GET', ['/bans?pageSize=1', '/sites?pageSize=1', '/nodes', '/changes'][step % 4]!);
        await delay(PAUSE_MS);
      }
      return caller.failures.length;
    };
    const writers = Promise.all(Array.from({ length: WRITERS }, (_, number) => writer(number)));
    try {
      for (const name of ServicesApart.names.slice(1)) {
        await apart.kill(name);
        await apart.run(name);
        await apart.complete(...GATEWAYS);
      }
      // Cut off and alive.
      const { pid } = apart.process('bans').child;
      process.kill(pid, 'SIGSTOP');
      await delay(4_000);
      process.kill(pid, 'SIGCONT');
      await apart.restartRedis(5_000);
      await apart.complete(...GATEWAYS);
    } finally {
      faults = false;
    }
    const failures = (await writers).reduce((sum, count) => sum + count, 0);
    t.log(`${asked} requests confirmed, ${failures} attempts failed`);

    const notOnce = async (action: string, targets: string, ids: Iterable<string>) => {
      const { rows } = await apart.sql.query<{ target: string; count: number }>(
        `select ${targets} as target, count(*)::int as count from audit_entry where action = any($1) group by 1`,
        [action.split(' ')],
      );
      const counts = new Map(rows.map(({ target, count }) => [target, count]));
      return [...ids].filter((id) => counts.get(id) !== 1).map((id) => `${action} ${id}: ${counts.get(id) ?? 0}`);
    };
    const { rows: stored } = await apart.sql.query<{ name: string }>(`select name from site where name like 'apart-%'`);
    t.deepEqual(stored.map(({ name }) => name).sort(), [...sites.keys()].sort());
    t.deepEqual(await notOnce('ban.create ban.update', "replace(target_name, '/32', '')", bans), []);
    t.deepEqual(await notOnce('site.create', 'target_name', sites.keys()), []);
    t.deepEqual(await notOnce('site.protection_update', 'target_id', sites.values()), []);
    t.deepEqual(await notOnce('site.waf_update', 'target_id', sites.values()), []);

    // And nodes get all of it, from either process of their channel.
    for (const name of ['channel', 'moreChannel'] as const) {
      const console = { client: apart.process('front').client, nodeApiUrl: apart.process(name).nodeApiUrl };
      const node = connectAs(console, await enrollOne(console, clusterId, ['bans-v1', 'challenge-v1']));
      try {
        const { upserts } = await node.call('getBans', {});
        const held = new Set(upserts.map(({ cidr }) => cidr.replace('/32', '')));
        t.deepEqual(
          [...bans].filter((address) => !held.has(address)),
          [],
        );
      } finally {
        node.destroy();
      }
    }
  },
);
