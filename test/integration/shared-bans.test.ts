// Automatic bans among nodes: who gets a ban that one of them made, and who gets keys.
import test from 'ava';
import type { Fleet } from '../../bench/fleet/fleet.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { eventually } from '../helpers/eventually.ts';
import { startTestFleet } from '../helpers/fleet.ts';
import { Api } from '../helpers/resources.ts';

const NODES = 5;

let running: TestConsole;
let api: Api;
let here: Fleet;
let elsewhere: Fleet;
let siteId: string;

test.before('two clusters of nodes', async () => {
  running = await startTestConsole();
  api = new Api(running);
  const [one, two] = [await api.cluster('one'), await api.cluster('two')];
  siteId = (await api.site(one, 'shared.example')).id;
  here = await startTestFleet(running, one, NODES);
  elsewhere = await startTestFleet(running, two, NODES);
});
test.after.always('stop', async () => {
  await here?.stop();
  await elsewhere?.stop();
  await running?.stop();
});

const listed = async (cidr: string) =>
  eventually(async () => (await api.ok('GET', `/bans?source=auto&address=${cidr}`)).items[0], {
    everyMs: 100,
    what: 'the ban to be listed',
  });
const holders = (fleet: Fleet) => fleet.nodes.map((node) => node.store.banCount());

test.serial(
  'a ban of a site is shared with all nodes of its cluster and with no others, and so is its lift',
  async (t) => {
    await here.nodes[0]!.reportBan(siteId, '203.0.113.7/32');
    const ban = await listed('203.0.113.7');
    t.like(ban, { reason: 'cc_ip_rate', distributed: true, node: { id: here.nodes[0]!.nodeId } });
    await here.waitForBans(ban.seq, 30_000);
    t.deepEqual(holders(here), Array(NODES).fill(1));
    await api.ok('DELETE', `/bans/${ban.id}`);
    await eventually(() => holders(here).every((count) => count === 0), { what: 'the lift' });
    t.deepEqual(holders(elsewhere), Array(NODES).fill(0));
  },
);

test.serial('an unshared ban goes to nobody', async (t) => {
  await api.ok('PUT', '/settings/bans', { shareAutoBans: false });
  await here.nodes[1]!.reportBan(siteId, '203.0.113.8/32');
  t.false((await listed('203.0.113.8')).distributed);
  // A later shared ban has arrived everywhere: the one before would have, too.
  await api.ok('PUT', '/settings/bans', { shareAutoBans: true });
  await here.nodes[1]!.reportBan(siteId, '203.0.113.9/32');
  await here.waitForBans((await listed('203.0.113.9')).seq, 30_000);
  t.deepEqual(holders(here), Array(NODES).fill(1));
});

test.serial('every node holds the keys of its cluster', async (t) => {
  await eventually(() => [...here.nodes, ...elsewhere.nodes].every((node) => node.keysVersion === 1n), {
    what: 'the keys',
  });
  t.pass();
});
