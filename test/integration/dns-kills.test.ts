// kill −9 of the worker at each write around records that show names by DNS: noting one before it is made, going on once it
// was made, ending the order, forgetting one after it was removed. Whatever was lost, no value stays in the zone.
import { randomBytes } from 'node:crypto';
import test from 'ava';
import { orderOver, requestOf, useAuthority } from '../helpers/acme-cluster.ts';
import { startAcmeDirectory, type TestAuthority } from '../helpers/acme-directory.ts';
import { startTestConsole, startTestConsoleProcess, type TestConsole } from '../helpers/console.ts';
import { TestDns } from '../helpers/dns-server.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api } from '../helpers/resources.ts';
import { StandingWrites, stand } from '../helpers/standing-writes.ts';
import { withoutJobs } from '../helpers/without-jobs.ts';

const ZONE = 'zone.example.org';
/** The name server is on this machine. */
const ALLOWED = { SVC_OUTBOUND_ALLOW_CIDRS: '127.0.0.0/8' };
/**
 * What dies at the same time, in the order in which it is asked for. A removal comes first: its order is over, and as many
 * others as a worker walks at a time stand beside it.
 */
const KILLS = [
  ['lost-forget', 'lost-note', 'written-note', 'lost-propagate'],
  ['written-forget', 'written-propagate', 'lost-done', 'written-done'],
] as const;

// The write of `lost-WHAT.ZONE` stands before its row is changed, that of `written-WHAT.ZONE` while it is committed.
const TRIGGERS = `
  create function stand_order() returns trigger language plpgsql as $$ begin
    if old.state <> new.state and new.names[1] = tg_argv[0] || '-' || new.state || '.${ZONE}' then
      ${stand('new.names[1]')}
    end if;
    return new;
  end $$;
  create trigger stand_lost before update on acme_order for each row execute function stand_order('lost');
  create constraint trigger stand_written after update on acme_order deferrable initially deferred
    for each row execute function stand_order('written');
  create function stand_record() returns trigger language plpgsql as $$
  declare
    found acme_dns_record := case when tg_op = 'DELETE' then old else new end;
    host text := tg_argv[0] || case when tg_op = 'DELETE' then '-forget' else '-note' end || '.${ZONE}';
  begin
    if found.name = '_acme-challenge.' || host then
      ${stand('host')}
    end if;
    return found;
  end $$;
  create trigger stand_lost before insert or delete on acme_dns_record for each row execute function stand_record('lost');
  create constraint trigger stand_written after insert or delete on acme_dns_record deferrable initially deferred
    for each row execute function stand_record('written')`;

let home: TestConsole;
let api: Api;
let authority: TestAuthority;
let dns: TestDns;
let writing: StandingWrites;
let credentialId: string;

test.before(async () => {
  const key = { name: 'key.example.org', algorithm: 'hmac-sha256', secret: randomBytes(32) } as const;
  dns = await new TestDns(ZONE, key).start();
  home = await startTestConsole({ env: { ...withoutJobs(), ...ALLOWED } });
  api = new Api(home);
  authority = await startAcmeDirectory({
    look: async ({ name, digest }) => dns.texts.get(`_acme-challenge.${name}`)?.has(digest) || 'unauthorized',
  });
  await useAuthority(api, authority);
  const credential = {
    name: 'Own server',
    provider: 'rfc2136',
    zone: ZONE,
    server: dns.address,
    keyName: key.name,
    algorithm: key.algorithm,
    secret: key.secret.toString('base64'),
    nameservers: [dns.address],
  };
  credentialId = (await api.ok('POST', '/dns-credentials', credential)).id;
  await api.sql.raw(TRIGGERS);
  writing = await StandingWrites.open(home.databaseUrl);
});

test.after.always(async () => {
  await writing?.close();
  await authority?.close();
  await home?.stop();
  await dns?.stop();
});

/** The process that works on orders. */
const startWorker = () =>
  startTestConsoleProcess({
    database: { url: home.databaseUrl },
    masterKey: home.env.SVC_MASTER_KEY!,
    redisPrefix: home.env.SVC_REDIS_PREFIX!,
    setUp: false,
    env: { SERVICES: 'housekeeping', ...ALLOWED },
  });

test.serial('whenever the worker dies, no value stays in the zone, and none stands there beside another', async (t) => {
  t.timeout(600_000);
  const asked = new Map<string, string>();
  for (const points of KILLS) {
    const worker = await startWorker();
    try {
      const names = points.map((point) => `${point}.${ZONE}`);
      for (const [index, name] of names.entries()) {
        await writing.hold(name);
        const request = requestOf([name], { challenge: 'dns01', dnsCredentialId: credentialId });
        asked.set(name, (await api.ok('POST', '/certificates/request', request)).id);
        await writing.all(names.slice(0, index + 1));
      }
      await worker.kill();
      await writing.decide(
        names,
        names.filter((name) => name.startsWith('lost')),
      );
    } finally {
      await worker.stop();
    }
  }
  t.true(dns.texts.size > 0, 'values were left by those that died');
  // Removals that began are not tried again for as long as one may take.
  await api.sql('acme_dns_record').whereNotNull('removing_until').update({ removing_until: new Date() });
  const worker = await startWorker();
  try {
    for (const [name, id] of asked) {
      const over = await orderOver(api, id);
      t.is(over.state, 'done', `${name}: ${JSON.stringify(over)}`);
      t.is(authority.issued.filter(({ names }) => names.includes(name)).length, 1, name);
    }
    await eventually(async () => (await api.sql('acme_dns_record')).length === 0, { what: 'nothing left to remove' });
  } finally {
    await worker.stop();
  }
  t.is(dns.texts.size, 0);
  t.is(dns.together, 1);
});
