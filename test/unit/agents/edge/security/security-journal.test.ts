import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { SecurityJournal } from '../../../../../agents/edge/security/security-journal.ts';
import { MAX_WAITING } from '../../../../../agents/edge/security/security-state.ts';
import { SecurityBatchSchema } from '../../../../../proto/gen/svc/edge/v1/edge_pb.js';
import type { BatchContent } from '../../helpers/caddy.ts';
import { START, TestClock } from '../../helpers/clock.ts';
import { temporaryFolder } from '../../helpers/folder.ts';
import { onFullDisk } from '../../helpers/full-disk.ts';
import { memoryLog } from '../../helpers/log.ts';
import { levelEvent, levels, ownBan } from '../../helpers/security.ts';

const MINUTE = 60_000;

function setUp(t: ExecutionContext, capacity = 100_000) {
  const path = join(temporaryFolder(t), 'security.journal');
  const clock = new TestClock();
  const { log } = memoryLog();
  const open = () => SecurityJournal.open({ path, nodeId: 'n', clusterId: 'c', capacity, log, clock });
  let sequence = 0n;
  const batch = (content: BatchContent, instanceId = 'one', number = ++sequence) =>
    create(SecurityBatchSchema, { ...content, instanceId, sequence: number });
  return { path, clock, open, batch };
}

/** Everything a restart must not change. */
function shown(journal: SecurityJournal, clock: TestClock) {
  const { state } = journal;
  return {
    own: state
      .liveBans()
      .map((row) => `${row.siteId} ${row.cidr} ${Math.round(row.expiresAt - clock.monotonic())}`)
      .sort(),
    sites: state
      .sites()
      .map(({ siteId, site, paths }) => `${siteId} ${site?.level} ${paths.map(({ path }) => path)}`)
      .sort(),
    waitingBans: state.waitingBans.map((row) => `${row.siteId} ${row.cidr}`),
    waitingEvents: state.waitingEvents.map(({ event, at }) => `${event.id} ${Math.round(at - clock.monotonic())}`),
    cursor: `${state.cursor.instanceId} ${state.cursor.sequence}`,
  };
}

test('own bans, levels and what was not reported survive a restart of the agent', async (t) => {
  const { clock, open, batch } = setUp(t);
  const journal = open();
  t.deepEqual(
    journal.takeBatch(batch({ bans: [ownBan('192.0.2.1/32', START), ownBan('192.0.2.9/32', START, 600, '')] })),
    ['192.0.2.9/32'],
  );
  journal.takeBatch(
    batch({ events: [levelEvent('e-1', START)], sites: [levels('s1', 2), levels('s2', 0, { '/a': 1 })] }),
  );
  journal.takeBatch(batch({ sites: [levels('s2', 0)] }));
  journal.reported(1, 0);
  await journal.close();
  clock.pass(MINUTE);
  const again = open();
  t.deepEqual(shown(again, clock), {
    own: [' 192.0.2.9/32 540000', 's1 192.0.2.1/32 540000'],
    sites: ['s1 2 '],
    waitingBans: [' 192.0.2.9/32'],
    waitingEvents: ['e-1 -60000'],
    cursor: 'one 3',
  });
  t.is(await again.acknowledgeable('one'), 3n);
  t.is(await again.acknowledgeable('two'), 0n);
  await again.close();
});

test('a batch that comes again changes nothing', async (t) => {
  const { clock, open, batch } = setUp(t);
  const journal = open();
  const first = batch({ bans: [ownBan('192.0.2.1/32', START)], events: [levelEvent('e-1', START)] });
  journal.takeBatch(first);
  journal.takeBatch(batch({ sites: [levels('s1', 2)] }));
  const before = shown(journal, clock);
  journal.takeBatch(first);
  t.deepEqual(shown(journal, clock), before);
  await journal.close();
});

test('a lift ends own bans that expire no later, in memory, on disk and among what is to be reported', async (t) => {
  const { clock, open, batch } = setUp(t);
  const journal = open();
  journal.takeBatch(batch({ bans: [ownBan('192.0.2.1/32', START, 60, ''), ownBan('2001:db8::/64', START, 600, '')] }));
  journal.takeBatch(batch({ bans: [ownBan('192.0.2.1/32', START, 60)] }));
  const at = (seconds: number) => clock.monotonic() + seconds * 1000;
  t.deepEqual(journal.lift([{ siteId: '', cidr: '2001:DB8::/64', expiresNoLaterThan: at(500) }]), [], 'it ends later');
  t.deepEqual(journal.lift([{ siteId: '', cidr: '192.0.2.1/32', expiresNoLaterThan: at(59.5) }]), ['192.0.2.1/32']);
  const expected = ['2001:db8::/64', '192.0.2.1/32'];
  t.deepEqual(
    journal.state.waitingBans.map((row) => row.cidr),
    expected,
  );
  await journal.close();
  const again = open();
  t.deepEqual(
    again.state.liveBans().map((row) => `${row.siteId} ${row.cidr}`),
    [' 2001:db8::/64', 's1 192.0.2.1/32'],
  );
  t.deepEqual(
    again.state.waitingBans.map((row) => row.cidr),
    expected,
  );
  await again.close();
});

test('a ban expires by itself, and a step of the wall clock does not change when', async (t) => {
  const { clock, open, batch } = setUp(t);
  const journal = open();
  journal.takeBatch(batch({ bans: [ownBan('192.0.2.1/32', START, 600, '')] }));
  clock.wallMs += 60 * MINUTE;
  clock.pass(9 * MINUTE);
  t.is(journal.state.globalRemainingMs('192.0.2.1/32'), MINUTE);
  await journal.maintain();
  await journal.close();
  const again = open();
  t.is(again.state.globalRemainingMs('192.0.2.1/32'), MINUTE);
  clock.pass(MINUTE);
  t.is(again.state.globalRemainingMs('192.0.2.1/32'), undefined);
  t.deepEqual(again.state.liveBans(), []);
  await again.close();
});

test('of more own bans than there is room for, and of more unreported things, the oldest go', async (t) => {
  const { open, batch } = setUp(t, 3);
  const journal = open();
  const bans = [1, 2, 3, 4, 5].map((host) => ownBan(`192.0.2.${host}/32`, START));
  journal.takeBatch(batch({ bans }));
  t.deepEqual(
    journal.state.liveBans().map((row) => row.cidr),
    ['192.0.2.3/32', '192.0.2.4/32', '192.0.2.5/32'],
  );
  const events = Array.from({ length: MAX_WAITING + 7 }, (_, index) => levelEvent(`e-${index}`, START));
  journal.takeBatch(batch({ events, dropped: 2n }));
  t.is(journal.state.waitingEvents.length, MAX_WAITING);
  t.is(journal.state.waitingEvents[0]!.event.id, 'e-7');
  t.is(journal.state.dropped, 9n);
  journal.takeBatch(batch({ dropped: 3n }));
  journal.takeBatch(batch({ dropped: 4n }, 'two', 1n));
  t.is(journal.state.dropped, 14n, 'a new process counts from zero');
  await journal.close();
});

test('malformed own bans are left out', async (t) => {
  const { open, batch } = setUp(t);
  const journal = open();
  journal.takeBatch(batch({ bans: [ownBan('10.0.0.0/8', START), ownBan('x', START), ownBan('192.0.2.1', START)] }));
  t.deepEqual(
    journal.state.liveBans().map((row) => row.cidr),
    ['192.0.2.1/32'],
  );
  await journal.close();
});

test('a file of mostly history is written anew and says the same', async (t) => {
  const { path, clock, open, batch } = setUp(t);
  const journal = open();
  for (let index = 0; index < 3000; index++) {
    journal.takeBatch(
      batch({ bans: [ownBan(`10.0.${index % 8}.1/32`, START)], events: [levelEvent(`e-${index}`, START)] }),
    );
    if (index < 2990) journal.reported(1, 1);
  }
  const before = shown(journal, clock);
  const bytes = readFileSync(path).length;
  const maintaining = journal.maintain();
  journal.takeBatch(batch({ sites: [levels('s9', 3)] }));
  await maintaining;
  t.true(readFileSync(path).length < bytes / 10);
  await journal.close();
  const again = open();
  const after = shown(again, clock);
  t.deepEqual({ ...after, sites: [], cursor: '' }, { ...before, sites: [], cursor: '' });
  t.deepEqual([after.sites, after.cursor], [['s9 3 '], 'one 3001'], 'what came meanwhile was carried over');
  await again.close();
});

const FULL_DISK = `
const [root, folder] = process.argv.slice(1);
const { SecurityJournal } = await import(root + '/agents/edge/security/security-journal.ts');
const { levelEvent, levels, ownBan } = await import(root + '/test/unit/agents/helpers/security.ts');
const { SecurityBatchSchema } = await import(root + '/proto/gen/svc/edge/v1/edge_pb.js');
const { create } = await import('@bufbuild/protobuf');
const { rmSync, writeFileSync } = await import('node:fs');
const quiet = () => undefined;
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet, child: () => log };
const open = () => SecurityJournal.open({ path: folder + '/security.journal', nodeId: 'n', clusterId: 'c', capacity: 1000, log });
const batch = (sequence, content) => create(SecurityBatchSchema, { ...content, instanceId: 'one', sequence });
const now = Date.now();
const facts = [];
const journal = open();
journal.takeBatch(batch(1n, { bans: [ownBan('192.0.2.1/32', now)] }));
try { writeFileSync(folder + '/filler', Buffer.alloc(2_000_000)); } catch {}
for (let n = 2; n < 200; n++) journal.takeBatch(batch(BigInt(n), { events: [levelEvent('e-' + n, now)] }));
journal.takeBatch(batch(200n, { bans: [ownBan('192.0.2.2/32', now)], sites: [levels('s1', 2)] }));
facts.push(journal.state.liveBans().length === 2 && journal.state.sites().length === 1);
facts.push(journal.problem !== '', (await journal.acknowledgeable('one')) < 200n);
await journal.maintain();
facts.push(journal.problem !== '', (await journal.acknowledgeable('one')) < 200n);
rmSync(folder + '/filler');
await journal.maintain();
facts.push(journal.problem === '', (await journal.acknowledgeable('one')) === 200n);
await journal.close();
const again = open();
facts.push(again.state.liveBans().length === 2, again.state.waitingEvents.length === 198, again.state.sites().length === 1);
facts.push((await again.acknowledgeable('one')) === 200n);
console.log(JSON.stringify(facts));
`;

test('a full disk: nothing is lost, nothing is acknowledged, and all is written when there is room', (t) => {
  t.deepEqual(onFullDisk(t, FULL_DISK), Array(11).fill(true));
});

test('property: whatever happens, a restart at any moment leads to the same state, before and after compaction', async (t) => {
  const address = fc.integer({ min: 1, max: 6 });
  const step = fc.oneof(
    fc.record({
      kind: fc.constant('ban' as const),
      host: address,
      seconds: fc.integer({ min: 1, max: 900 }),
      global: fc.boolean(),
    }),
    fc.record({ kind: fc.constant('event' as const), count: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ kind: fc.constant('level' as const), site: address, level: fc.integer({ min: 0, max: 4 }) }),
    fc.record({
      kind: fc.constant('lift' as const),
      host: address,
      seconds: fc.integer({ min: 1, max: 900 }),
      global: fc.boolean(),
    }),
    fc.record({ kind: fc.constant('reported' as const), bans: fc.nat(3), events: fc.nat(3) }),
    fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 200_000 }) }),
    fc.record({ kind: fc.constant('step' as const), ms: fc.constantFrom(-500_000, -3000, 3000, 500_000) }),
    fc.record({ kind: fc.constant('instance' as const) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { clock, open, batch } = setUp(t, 5);
      let journal = open();
      let instance = 0;
      let sequence = 0n;
      let events = 0;
      for (const each of steps) {
        const next = (content: BatchContent) => journal.takeBatch(batch(content, `i${instance}`, ++sequence));
        const { state } = journal;
        if (each.kind === 'ban')
          next({ bans: [ownBan(`192.0.2.${each.host}/32`, clock.wall(), each.seconds, each.global ? '' : 's1')] });
        else if (each.kind === 'event')
          next({ events: Array.from({ length: each.count }, () => levelEvent(`e-${events++}`, clock.wall())) });
        else if (each.kind === 'level') next({ sites: [levels(`s${each.site}`, each.level)] });
        else if (each.kind === 'lift')
          journal.lift([
            {
              siteId: each.global ? '' : 's1',
              cidr: `192.0.2.${each.host}/32`,
              expiresNoLaterThan: clock.monotonic() + each.seconds * 1000,
            },
          ]);
        else if (each.kind === 'reported')
          journal.reported(
            Math.min(each.bans, state.waitingBans.length),
            Math.min(each.events, state.waitingEvents.length),
          );
        else if (each.kind === 'pass') clock.pass(each.ms);
        else if (each.kind === 'step') {
          clock.wallMs += each.ms;
          await journal.maintain();
        } else {
          instance++;
          sequence = 0n;
        }
      }
      const before = shown(journal, clock);
      await journal.close();
      journal = open();
      t.deepEqual(shown(journal, clock), before);
      await journal.close();
    }),
    { numRuns: 60 },
  );
});
