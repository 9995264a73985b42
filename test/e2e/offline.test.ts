// A node without its console: cut off, console stopped, state damaged, database restored to an earlier day.
import { readdirSync, readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import pg from 'pg';
import { edgeGet } from '../helpers/edge-request.ts';
import { eventually } from '../helpers/eventually.ts';
import { CLIENT_IP_HEADER, type Installation, startInstallation } from '../helpers/installation.ts';

let installation: Installation;

test.before('start everything', async () => {
  installation = await startInstallation();
  await createSite('kept.example');
  await ban('192.0.2.66');
  await eventually(async () => (await status('kept.example')) === 200, { what: 'the first site' });
  await eventually(() => banned('192.0.2.66'), { what: 'the first ban' });
});

test.afterEach.always('show errors', (t) => {
  if (!t.passed) for (const line of installation.errors()) t.log(line);
});

test.after.always('stop everything', async () => {
  await installation?.stop();
});

const VISITOR = '192.0.2.10';

async function createSite(domain: string): Promise<void> {
  await installation.client.api('POST', '/sites', { domains: [domain], origins: [installation.origin] });
}

/** Status the edge answers a visitor with; 0 while it does not answer. */
async function status(host: string, visitor = VISITOR): Promise<number> {
  return edgeGet(installation.edge, host, { [CLIENT_IP_HEADER]: visitor }).then(
    (answer) => answer.status,
    () => 0,
  );
}

const banned = async (visitor: string) => (await status('kept.example', visitor)) === 403;

async function ban(cidr: string, durationSeconds = 3600): Promise<void> {
  await installation.client.api('POST', '/bans', { scope: 'platform', cidr, reason: 'attack', durationSeconds });
}

async function stopConsoles(): Promise<void> {
  const { app, channel, worker } = installation.consoles;
  await Promise.all([app, channel, worker].map(({ child }) => child.stop()));
}

test.serial('with the console gone the edge serves, restarts from disk, keeps bans and lets them expire', async (t) => {
  await ban('192.0.2.60', 60);
  await eventually(() => banned('192.0.2.60'), { what: 'the short ban' });
  const { consoles, node } = installation;
  for (const each of [consoles.app, consoles.channel, consoles.worker]) process.kill(each.child.pid, 'SIGSTOP');
  try {
    t.is(await status('kept.example'), 200);
    await node.supervisor.stop();
    t.is(await status('kept.example'), 0, 'the edge is down');
    node.restart();
    await eventually(async () => (await status('kept.example')) === 200, { what: 'the edge to serve from its disk' });
    t.true(await banned('192.0.2.66'), 'the ban was loaded before the first answer');
    await eventually(async () => !(await banned('192.0.2.60')), { timeoutMs: 90_000, what: 'the short ban to expire' });
    t.true(await banned('192.0.2.66'));
  } finally {
    for (const each of [consoles.app, consoles.channel, consoles.worker]) process.kill(each.child.pid, 'SIGCONT');
  }
  await ban('192.0.2.67');
  await eventually(() => banned('192.0.2.67'), { timeoutMs: 90_000, what: 'a ban after the return of the console' });
});

const OF_HTTPS = ['session-ticket-keys.json', 'quic.key', 'certificates.pack'];
const isNewer = (name: string) => name.endsWith('.before') || name.startsWith('feed-') || OF_HTTPS.includes(name);

test.serial(
  'a node whose files an older version left beside its key serves at once, without its console',
  async (t) => {
    const { consoles, node } = installation;
    for (const each of [consoles.app, consoles.channel, consoles.worker]) process.kill(each.child.pid, 'SIGSTOP');
    try {
      await node.supervisor.stop();
      const folder = join(node.stateDir, 'edge');
      // An older version kept no journals of before a rewrite, none of feeds by name, and nothing of HTTPS.
      for (const name of readdirSync(folder)) if (isNewer(name)) rmSync(join(folder, name));
      const names = readdirSync(folder);
      for (const name of names) renameSync(join(folder, name), join(node.stateDir, name));
      rmdirSync(folder);
      node.restart();
      const first = await eventually(async () => (await status('kept.example', '192.0.2.66')) || undefined, {
        what: 'the first answer',
      });
      t.is(first, 403, 'bans were found');
      t.is(await status('kept.example'), 200, 'and the site');
      t.deepEqual(
        readdirSync(folder)
          .filter((name) => !isNewer(name))
          .sort(),
        names.sort(),
      );
    } finally {
      for (const each of [consoles.app, consoles.channel, consoles.worker]) process.kill(each.child.pid, 'SIGCONT');
    }
  },
);

test.serial('a damaged state file is set aside and said, and the node fetches what it lacks', async (t) => {
  const { node } = installation;
  await node.supervisor.stop();
  for (const name of ['config.journal', 'bans.journal']) {
    const file = join(node.stateDir, 'edge', name);
    const bytes = readFileSync(file);
    // The first record after the header's length and sum: what follows is whole, so this is damage and not a torn tail.
    bytes.fill(0xff, 8, 24);
    writeFileSync(file, bytes);
  }
  await createSite('while-damaged.example');
  await node.start();
  for (const host of ['kept.example', 'while-damaged.example']) {
    await eventually(async () => (await status(host)) === 200, { timeoutMs: 60_000, what: host });
  }
  await eventually(() => banned('192.0.2.66'), { timeoutMs: 60_000, what: 'the ban to be fetched again' });
  const aside = readdirSync(join(node.stateDir, 'edge')).filter((name) => name.includes('.corrupt-'));
  t.is(aside.length, 2, 'both files were kept for whoever wants to look');
  t.regex(node.log(), /corrupt|damaged/);
});

test.serial('after the database was restored to an earlier day, the node notices and follows it', async (t) => {
  const { client } = installation;
  await stopConsoles();
  await copyDatabase(installation.databaseUrl, 'earlier');
  await installation.startConsoles();
  await createSite('after-backup.example');
  await ban('192.0.2.90');
  await eventually(async () => (await status('after-backup.example')) === 200, { what: 'the later site' });
  await eventually(() => banned('192.0.2.90'), { what: 'the later ban' });

  await stopConsoles();
  await restoreDatabase(installation.databaseUrl, 'earlier');
  await installation.startConsoles();
  await eventually(async () => (await status('after-backup.example')) === 404, {
    timeoutMs: 90_000,
    what: 'the site that the restored database does not know to go',
  });
  await eventually(async () => !(await banned('192.0.2.90')), { timeoutMs: 90_000, what: 'the later ban to go' });
  t.is(await status('kept.example'), 200);
  t.true(await banned('192.0.2.66'), 'what was there before the backup stays');

  await createSite('after-restore.example');
  await ban('192.0.2.91');
  await eventually(async () => (await status('after-restore.example')) === 200, { what: 'a change after the restore' });
  await eventually(() => banned('192.0.2.91'), { what: 'a ban after the restore' });
  await eventually(
    async () => {
      const { items } = await client.api<{ items: { applyState: string; applyMessage: string }[] }>('GET', '/nodes');
      if (items[0]?.applyState !== 'applied') throw new Error(JSON.stringify(items[0]));
      return true;
    },
    { what: 'the node to be in sync' },
  );
});

function maintenance<T>(url: string, work: (client: pg.Client, database: string) => Promise<T>): Promise<T> {
  const address = new URL(url);
  const database = address.pathname.slice(1);
  address.pathname = '/postgres';
  const client = new pg.Client({ connectionString: address.href });
  return client
    .connect()
    .then(() => work(client, database))
    .finally(() => client.end());
}

const copyDatabase = (url: string, name: string) =>
  maintenance(url, (client, database) => client.query(`create database ${database}_${name} template ${database}`));

const restoreDatabase = (url: string, name: string) =>
  maintenance(url, async (client, database) => {
    await client.query(`drop database ${database} with (force)`);
    await client.query(`alter database ${database}_${name} rename to ${database}`);
  });
