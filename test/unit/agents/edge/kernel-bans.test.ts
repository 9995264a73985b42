import { spawn } from 'node:child_process';
import test, { type ExecutionContext } from 'ava';
import { type Cidr, parseCidr } from '../../../../agents/edge/bans/cidr.ts';
import { KernelBans, type KernelBansOptions } from '../../../../agents/edge/nft/kernel-bans.ts';
import { markOf, type ProcessMark } from '../../../../agents/kit/process-info.ts';
import { temporaryFolder } from '../helpers/folder.ts';
import { memoryLog } from '../helpers/log.ts';
import { startNetwork } from '../helpers/network.ts';

const HOUR_MS = 3600_000;
let tables = 0;

/** Bans by canonical CIDR with their remaining time. */
class Bans extends Map<string, number> {
  orderedGlobalCidrs(): string[] {
    return [...this.keys()];
  }
  remainingMs(cidr: string): number | undefined {
    return this.get(cidr);
  }
}

async function setUp(t: ExecutionContext, clientAddresses: string[], extra: Partial<KernelBansOptions> = {}) {
  const network = await startNetwork(t, temporaryFolder(t), clientAddresses);
  const bans = new Bans();
  const allowed: Cidr[] = [parseCidr('127.0.0.0/8')!, parseCidr('::1')!];
  const { log, lines } = memoryLog();
  const options: KernelBansOptions = {
    nftBin: network.nftBin,
    table: `svc_test_${process.pid}_${tables++}`,
    nodeId: 'node-1',
    owner: markOf(process.pid)!,
    capacity: 1000,
    source: bans,
    allowed: () => allowed,
    log,
    ...extra,
  };
  const listed = async (set: string): Promise<string> => network.nft('list', 'set', 'inet', options.table, set);
  return { network, bans, allowed, options, lines, listed };
}

test.serial(
  'banned addresses, networks and /64s cannot finish a handshake, others can, and a lift restores',
  async (t) => {
    const clients = [
      '203.0.113.5',
      '203.0.113.6',
      '198.51.100.9',
      '198.51.101.9',
      '2001:db8:5::1',
      '2001:db8:5::2',
      '2001:db8:6::9',
      '2001:db8:7:1::1',
      '2001:db8:8::1',
    ];
    const { network, bans, options } = await setUp(t, clients);
    const kernel = await KernelBans.start(options);
    for (const client of clients) t.true(await network.canConnect(client), client);
    for (const cidr of ['203.0.113.5/32', '198.51.100.0/24', '2001:db8:5::1/128', '2001:db8:6::/64', '2001:db8:7::/48'])
      bans.set(cidr, HOUR_MS);
    kernel.update(bans.keys());
    await kernel.settled();
    const banned = ['203.0.113.5', '198.51.100.9', '2001:db8:5::1', '2001:db8:6::9', '2001:db8:7:1::1'];
    for (const client of clients) t.is(await network.canConnect(client), !banned.includes(client), client);
    t.is(kernel.entries, 5);
    const lifted = [...bans.keys()];
    bans.clear();
    kernel.update(lifted);
    await kernel.settled();
    for (const client of banned) t.true(await network.canConnect(client), client);
    t.is(kernel.entries, 0);
    await kernel.close(false);
  },
);

test.serial('exempt addresses pass although a ban covers them, also when they become exempt later', async (t) => {
  const { network, bans, allowed, options } = await setUp(t, ['203.0.113.5', '203.0.113.6']);
  bans.set('203.0.113.0/24', HOUR_MS);
  allowed.push(parseCidr('203.0.113.5')!);
  const kernel = await KernelBans.start(options);
  t.true(await network.canConnect('203.0.113.5'));
  t.false(await network.canConnect('203.0.113.6'));
  allowed.push(parseCidr('203.0.113.6')!);
  kernel.allowedChanged();
  await kernel.settled();
  t.true(await network.canConnect('203.0.113.6'));
  await kernel.close(false);
});

test.serial('an element ends by itself, and an update before or after that works and counts from anew', async (t) => {
  const { network, bans, options, listed } = await setUp(t, ['203.0.113.5']);
  const kernel = await KernelBans.start(options);
  bans.set('203.0.113.5/32', 1);
  kernel.update(['203.0.113.5/32']);
  await kernel.settled();
  t.false(await network.canConnect('203.0.113.5'));
  for (let waited = 0; waited < 100 && !(await network.canConnect('203.0.113.5')); waited++);
  t.true(await network.canConnect('203.0.113.5'));
  bans.set('203.0.113.5/32', HOUR_MS);
  kernel.update(['203.0.113.5/32']);
  await kernel.settled();
  t.regex(await listed('ban4'), /203\.0\.113\.5 timeout 1h/);
  bans.set('203.0.113.5/32', 2 * HOUR_MS);
  kernel.update(['203.0.113.5/32']);
  await kernel.settled();
  t.regex(await listed('ban4'), /203\.0\.113\.5 timeout 2h/);
  t.is(kernel.message, '');
  await kernel.close(false);
});

test.serial('nested prefixes keep the time of each address', async (t) => {
  const { bans, options, listed } = await setUp(t, []);
  const kernel = await KernelBans.start(options);
  bans.set('198.51.100.0/24', HOUR_MS);
  bans.set('198.51.100.64/26', 3 * HOUR_MS);
  bans.set('198.51.100.200/31', HOUR_MS / 2);
  kernel.update(bans.keys());
  await kernel.settled();
  const text = await listed('ban4n');
  t.regex(text, /198\.51\.100\.0(-198\.51\.100\.63|\/26) timeout 1h/);
  t.regex(text, /198\.51\.100\.64(-198\.51\.100\.127|\/26) timeout 3h/);
  t.regex(text, /198\.51\.100\.128(-198\.51\.100\.255|\/25) timeout 1h/);
  await kernel.close(false);
});

test.serial('thousands of bans and changes among them, in the order they come', async (t) => {
  const { bans, options, listed, network } = await setUp(t, ['10.0.0.7'], { capacity: 100_000 });
  for (let index = 0; index < 12_000; index++)
    bans.set(`10.${index >> 16}.${(index >> 8) & 255}.${index & 255}/32`, HOUR_MS);
  const kernel = await KernelBans.start(options);
  t.is((await listed('ban4')).split('timeout').length - 2, 12_000);
  t.false(await network.canConnect('10.0.0.7'));
  for (let index = 0; index < 200; index++) {
    bans.delete(`10.0.0.${index}/32`);
    kernel.update([`10.0.0.${index}/32`]);
    bans.set(`10.9.0.${index}/32`, HOUR_MS);
    kernel.update([`10.9.0.${index}/32`]);
  }
  await kernel.settled();
  t.is(kernel.entries, 12_000);
  t.is((await listed('ban4')).split('timeout').length - 2, 12_000);
  t.true(await network.canConnect('10.0.0.7'));
  await kernel.close(false);
});

test.serial('a table changed behind the agent is written anew at the next update', async (t) => {
  const { network, bans, options, lines } = await setUp(t, ['203.0.113.5', '203.0.113.6']);
  bans.set('203.0.113.5/32', HOUR_MS);
  const kernel = await KernelBans.start(options);
  await network.nft('delete', 'table', 'inet', options.table);
  t.true(await network.canConnect('203.0.113.5'));
  bans.set('203.0.113.6/32', HOUR_MS);
  kernel.update(['203.0.113.6/32']);
  await kernel.settled();
  t.false(await network.canConnect('203.0.113.5'));
  t.false(await network.canConnect('203.0.113.6'));
  t.true(lines.some((line) => line.includes('rewrites the whole table')));
  await kernel.close(false);
});

test.serial(
  'what another program changes in the table is found and repaired, and the rest is left alone',
  async (t) => {
    const { network, bans, allowed, options, lines, listed } = await setUp(t, ['203.0.113.5', '203.0.113.6'], {
      capacity: 10_000,
    });
    allowed.push(parseCidr('10.0.0.0/16')!, parseCidr('10.1.0.0/16')!, parseCidr('10.1.2.0/24')!);
    const texts = ['203.0.113.5/32', '::102:304/128', '1:0:0:2::3/128', '2001:db8:5:1::/64', '2001:db8:6::/48'];
    for (const cidr of [...texts, '198.51.100.0/24', '198.51.100.64/26', '198.51.102.0/31']) bans.set(cidr, HOUR_MS);
    bans.set('198.51.100.64/26', 3 * HOUR_MS);
    for (let index = 0; index < 500; index++) bans.set(`10.9.${index >> 8}.${index & 255}/32`, HOUR_MS + index * 1000);
    const kernel = await KernelBans.start(options);
    const warnings = () => lines.filter((line) => line.includes('another program'));
    const element = (verb: string, set: string, text: string) =>
      network.nft(verb, 'element', 'inet', options.table, set, `{ ${text} }`);
    /** Unlike any content, a handle tells a set that was written from one that was created anew. */
    const handle = async () => /# handle (\d+)/.exec(await network.nft('-a', 'list', 'chains', 'inet'))?.[1];
    await kernel.check();
    t.deepEqual(warnings(), [], 'what the agent wrote is as the kernel lists it');
    const before = await handle();

    const changes: Record<string, () => Promise<unknown>> = {
      'a removed host': () => element('delete', 'ban4', '203.0.113.5'),
      'a foreign host': () => element('add', 'ban4', '203.0.113.6 timeout 1d'),
      'a foreign host without an end': () => element('add', 'ban6', '2001:db8:9::1'),
      'a host with another time': async () => {
        await element('delete', 'ban6', '1:0:0:2::3');
        await element('add', 'ban6', '1:0:0:2::3 timeout 2m');
      },
      'a removed /64': () => element('delete', 'ban6p', '2001:db8:5:1::'),
      'a removed prefix': () => element('delete', 'ban4n', '198.51.100.64/26'),
      'a foreign prefix': () => element('add', 'ban6n', '2001:db8:7::/48 timeout 1h'),
      'a removed exempt address': () => element('delete', 'allow4', '127.0.0.0/8'),
      'a foreign exempt address': () => element('add', 'allow6', '2001:db8:8::/48'),
      'an emptied set': () => network.nft('flush', 'set', 'inet', options.table, 'ban4'),
    };
    const content = async () =>
      (await network.nft('list', 'table', 'inet', options.table)).replaceAll(/ (timeout|expires) \w+/g, '');
    const wanted = await content();
    for (const [what, change] of Object.entries(changes)) {
      await change();
      const count = warnings().length;
      await kernel.check();
      await kernel.settled();
      t.is(warnings().length, count + 1, what);
      t.is(await content(), wanted, what);
      await kernel.check();
      t.is(warnings().length, count + 1, `${what}: found once`);
      t.is(await handle(), before, `${what}: the table stays`);
    }
    t.regex(await listed('ban6'), /1:0:0:2::3 timeout 1h/);

    const rebuilt: Record<string, () => Promise<unknown>> = {
      'removed rules': () => network.nft('flush', 'chain', 'inet', options.table, 'input'),
      'an element with a comment': () => element('add', 'ban4', '203.0.113.7 timeout 1h comment "}, 1.2.3.4"'),
      'no table': () => network.nft('delete', 'table', 'inet', options.table),
    };
    for (const [what, change] of Object.entries(rebuilt)) {
      await change();
      await kernel.check();
      await kernel.settled();
      t.is(await content(), wanted, what);
      t.false(await network.canConnect('203.0.113.5'), what);
    }
    t.is(kernel.message, '');

    const checked = kernel.check();
    bans.set('203.0.113.6/32', HOUR_MS);
    kernel.update(['203.0.113.6/32']);
    await Promise.all([checked, kernel.settled()]);
    t.false(await network.canConnect('203.0.113.6'), 'a change ends a comparison');
    await kernel.close(false);
  },
);

test.serial('the table is deleted at the end, kept for the next agent, and taken over by it', async (t) => {
  const { network, bans, options } = await setUp(t, ['203.0.113.5']);
  bans.set('203.0.113.5/32', HOUR_MS);
  const first = await KernelBans.start(options);
  await first.close(true);
  t.true((await network.nft('list', 'tables')).includes(options.table));
  t.false(await network.canConnect('203.0.113.5'));
  bans.clear();
  const second = await KernelBans.start(options);
  t.true(await network.canConnect('203.0.113.5'));
  await second.close(false);
  t.is((await network.nft('list', 'tables')).trim(), '');
});

test.serial('leftovers of this node with a dead owner go; tables of others and of the living stay', async (t) => {
  const { network, options } = await setUp(t, []);
  const mine = markOf(process.pid)!;
  for (const [name, comment] of [
    ['svc_dead', 'node=node-1 pid=999999 start=1'],
    ['svc_reused', `node=node-1 pid=${mine.pid} start=1`],
    ['svc_alive', `node=node-1 pid=${mine.pid} start=${mine.startTime}`],
    ['svc_other', 'node=node-2 pid=999999 start=1'],
  ] as const) {
    await network.nft('add', 'table', 'inet', name, `{ comment "${comment}"; }`);
  }
  await network.nft('add', 'table', 'inet', 'filter');
  const kernel = await KernelBans.start(options);
  const names = (await network.nft('list', 'tables'))
    .trim()
    .split('\n')
    .map((line) => line.split(' ')[2])
    .sort();
  t.deepEqual(names, ['filter', options.table, 'svc_alive', 'svc_other'].sort());
  await kernel.close(false);
});

/** A process that lives until it is ended. */
function bystander(t: ExecutionContext): { owner: ProcessMark; end: () => Promise<void> } {
  const child = spawn('sleep', ['600'], { stdio: 'ignore' });
  t.teardown(() => child.kill('SIGKILL'));
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const end = async (): Promise<void> => {
    child.kill('SIGKILL');
    await gone;
  };
  return { owner: markOf(child.pid!)!, end };
}

test.serial('two agents never share a table', async (t) => {
  const { options } = await setUp(t, []);
  const other = bystander(t);
  const first = await KernelBans.start({ ...options, owner: other.owner });
  await t.throwsAsync(KernelBans.start(options), { message: /another agent owns/ });
  await t.throwsAsync(KernelBans.start({ ...options, nodeId: 'node-2' }), { message: /another agent owns/ });
  await first.close(false);
  await (await KernelBans.start(options)).close(false);
});

test.serial('of agents that start at the same time one gets a table, also that of a dead owner', async (t) => {
  const { options, network } = await setUp(t, []);
  for (const before of ['no table', 'a table of the dead']) {
    const dead = bystander(t);
    if (before !== 'no table') await (await KernelBans.start({ ...options, owner: dead.owner })).close(true);
    await dead.end();
    const starts = [1, 2, 3, 4].map((number) =>
      KernelBans.start({ ...options, nodeId: `node-${number}`, owner: bystander(t).owner }),
    );
    const settled = await Promise.allSettled(starts);
    const started = settled.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    t.is(started.length, 1, before);
    for (const result of settled)
      if (result.status === 'rejected') t.regex(String(result.reason), /another agent owns/, before);
    await started[0]!.close(false);
    t.is((await network.nft('list', 'tables')).trim(), '');
  }
});

test.serial('a table of another node in a namespace that cannot be seen is left alone', async (t) => {
  const { options, network } = await setUp(t, []);
  const comment = (node: string): string => `{ comment "node=${node} pid=999999 start=1 ns=1"; }`;
  await network.nft('add', 'table', 'inet', options.table, comment('node-2'));
  await t.throwsAsync(KernelBans.start(options), { message: /another agent owns .* \(node node-2\)/ });
  await network.nft('delete', 'table', 'inet', options.table);
  // The same node: the lock of its folder says that it does not run.
  await network.nft('add', 'table', 'inet', options.table, comment('node-1'));
  await (await KernelBans.start(options)).close(false);
});

test.serial('without a working nft the start fails with the reason and leaves no lock', async (t) => {
  const { options } = await setUp(t, []);
  await t.throwsAsync(KernelBans.start({ ...options, nftBin: '/nonexistent/nft' }), { message: /cannot be run/ });
  await (await KernelBans.start(options)).close(false);
});

test.serial('more bans than the capacity: the first ones of the order are in the kernel', async (t) => {
  const { bans, options, listed } = await setUp(t, [], { capacity: 3 });
  for (const last of [1, 2, 3, 4, 5]) bans.set(`203.0.113.${last}/32`, HOUR_MS);
  const kernel = await KernelBans.start(options);
  t.is(kernel.entries, 3);
  bans.set('203.0.113.6/32', HOUR_MS);
  kernel.update(['203.0.113.6/32']);
  await kernel.settled();
  const text = await listed('ban4');
  for (const last of [1, 2, 3]) t.true(text.includes(`203.0.113.${last} `));
  for (const last of [4, 5, 6]) t.false(text.includes(`203.0.113.${last} `));
  await kernel.close(false);
});
