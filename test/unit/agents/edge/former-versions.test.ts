// What the journal keeps so that a restart or a compaction never turns "the previous version serves" into "nothing serves".
import { createHash } from 'node:crypto';
import { closeSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { ConfigStore } from '../../../../agents/edge/config/config-store.ts';
import { parseEntry } from '../../../../agents/edge/config/entry.ts';
import { readConfigRecord } from '../../../../agents/edge/config/record.ts';
import { scanJournal } from '../../../../agents/kit/journal.ts';
import { type Entry, EntryKeySchema, EntrySchema } from '../../../../proto/gen/svc/config/v1/entry_pb.js';
import { type ConfigPosition, ConfigPositionSchema, Track } from '../../../../proto/gen/svc/node/v1/config_pb.js';
import { temporaryFolder } from '../helpers/folder.ts';
import { memoryLog } from '../helpers/log.ts';

/** Bodies that begin so do not compile. */
const BROKEN = 'broken';

/** A data plane as far as this matters: an entry that does not compile keeps its former version. */
class Edge {
  readonly running = new Map<string, string>();
  readonly failing = new Set<string>();
  position: ConfigPosition | undefined;

  put(id: string, body: string): void {
    if (body.startsWith(BROKEN)) {
      this.failing.add(id);
      return;
    }
    this.failing.delete(id);
    this.running.set(id, body);
  }

  remove(id: string): void {
    this.failing.delete(id);
    this.running.delete(id);
  }

  /** A new process that reads the journal. */
  static start(path: string): Edge {
    const edge = new Edge();
    let first = true;
    const fd = openSync(path, 'r');
    scanJournal(fd, (payload) => {
      if (first) {
        first = false;
        return true;
      }
      readConfigRecord(payload, {
        upsert: (start, end) => {
          const entry = parseEntry(payload, start, end);
          edge.put(entry.id, entry.body.toString());
        },
        remove: ({ id }) => edge.remove(id),
        position: (position) => {
          edge.position = position;
        },
      });
      return true;
    });
    closeSync(fd);
    return edge;
  }

  /** What it answers when it is asked which keys fail. */
  listed(): Map<string, Uint8Array> {
    const hash = (body: string | undefined): Uint8Array =>
      body === undefined ? new Uint8Array() : createHash('sha256').update(body).digest();
    return new Map([...this.failing].map((id) => [`site\0${id}`, hash(this.running.get(id))]));
  }

  get state(): [string, string][] {
    return [...this.running].sort();
  }
}

function open(path: string) {
  const store = ConfigStore.open({
    path,
    nodeId: 'node-1',
    clusterId: 'cluster-1',
    log: memoryLog().log,
    observer: { put: () => undefined, remove: () => undefined, clear: () => undefined },
  });
  const edge = Edge.start(path);
  const change = (bodies: Record<string, string>, removed: string[] = []): void => {
    const upserts = Object.entries(bodies).map(([id, body]) => entry(id, body));
    const deletes = removed.map((id) => create(EntryKeySchema, { kind: 'site', id }));
    store.apply({ position: next(store, store.hashAfter(upserts, deletes)), upserts, deletes });
    for (const [id, body] of Object.entries(bodies)) edge.put(id, body);
    for (const id of removed) edge.remove(id);
    edge.position = store.position;
  };
  return { store, edge, change };
}

function entry(id: string, body: string): Entry {
  return create(EntrySchema, { kind: 'site', id, body: Buffer.from(body), features: [] });
}

function next(store: ConfigStore, setHash: Uint8Array): ConfigPosition {
  const revision = store.position.revision + 1n;
  return create(ConfigPositionSchema, { epoch: 1n, track: Track.STABLE, revision, setHash });
}

function journalIn(t: ExecutionContext): string {
  return join(temporaryFolder(t), 'config.journal');
}

test('a compaction keeps, before the newest version of a key, the last one that compiled', async (t) => {
  const path = journalIn(t);
  const { store, edge, change } = open(path);
  change({ a: 'one', b: 'one' });
  change({ a: 'two', b: 'two' });
  change({ a: `${BROKEN} three`, b: 'three' });
  await store.settle(store.position, edge.listed());
  t.is(store.unsettled, 1);
  await store.compact();
  const restarted = Edge.start(path);
  t.deepEqual(restarted.state, [
    ['a', 'two'],
    ['b', 'three'],
  ]);
  t.deepEqual([...restarted.failing], ['a']);
  t.false(readFileSync(path).includes('one'), 'what cannot serve any more is gone');
  await store.close();
});

test('more than a thousand failing entries keep what serves through compactions and restarts of both', async (t) => {
  const path = journalIn(t);
  const bodies = (text: string) =>
    Object.fromEntries(Array.from({ length: 2500 }, (_, id) => [`s${id}`, `${text} ${id}`]));
  const first = open(path);
  first.change(bodies('good'));
  first.change(bodies(BROKEN));
  await first.store.settle(first.store.position, first.edge.listed());
  await first.store.compact();
  await first.store.close();
  const second = open(path);
  t.is(second.edge.running.size, 2500);
  t.is(second.store.unsettled, 2500);
  t.false(second.store.hasDrifted);
  second.change({ s7: 'mended' });
  await second.store.settle(second.store.position, second.edge.listed());
  t.is(second.store.unsettled, 2499);
  await second.store.compact();
  t.true(await second.store.verify());
  const restarted = Edge.start(path);
  t.deepEqual(restarted.state, second.edge.state);
  t.is(restarted.running.get('s7'), 'mended');
  await second.store.close();
});

test('while nobody says what compiles, every version that may serve is kept', async (t) => {
  const path = journalIn(t);
  const { store, change } = open(path);
  change({ a: 'one' });
  change({ a: 'two' });
  change({ a: `${BROKEN} three` });
  await store.compact();
  t.deepEqual(Edge.start(path).state, [['a', 'two']]);
  await store.close();
});

test('an answer about another position settles nothing', async (t) => {
  const { store, edge, change } = open(journalIn(t));
  change({ a: 'one' });
  const before = store.position;
  change({ a: `${BROKEN} two` });
  await store.settle(before, new Map());
  t.is(store.unsettled, 1);
  await store.settle(store.position, edge.listed());
  t.is(store.unsettled, 1);
  change({}, ['a']);
  t.is(store.unsettled, 0);
  await store.close();
});

test('a snapshot with an entry that does not compile keeps its former version', async (t) => {
  const path = journalIn(t);
  const { store, change } = open(path);
  change({ a: 'old a', b: 'old b', gone: 'old' });
  const snapshot = store.startSnapshot();
  const entries = [entry('a', `${BROKEN} a`), entry('b', 'new b'), entry('c', 'new c')];
  snapshot.add(entries);
  t.true(await store.replace(snapshot, next(store, snapshot.sum.toBytes())));
  t.deepEqual(Edge.start(path).state, [
    ['a', 'old a'],
    ['b', 'new b'],
    ['c', 'new c'],
  ]);
  t.true(await store.verify());
  await store.compact();
  t.is(Edge.start(path).running.get('a'), 'old a');
  await store.close();
  const again = open(path).store;
  t.is(again.size, 3);
  t.false(again.hasDrifted);
  await again.close();
});

test('former versions of megabytes fit into records, through snapshots and compactions', async (t) => {
  const path = journalIn(t);
  const { store, change } = open(path);
  const large = (text: string): string => text.padEnd(5_500_000, '.');
  change({ a: large('good') });
  for (let version = 0; version < 15; version++) change({ a: large(`${BROKEN} ${version}`) });
  const snapshot = store.startSnapshot();
  snapshot.add([entry('a', large(`${BROKEN} last`))]);
  t.true(await store.replace(snapshot, next(store, snapshot.sum.toBytes())));
  t.is(Edge.start(path).running.get('a'), large('good'));
  await store.compact();
  t.is(Edge.start(path).running.get('a'), large('good'));
  t.true(await store.verify());
  await store.close();
});

test('a file that lost entries is rewritten without a position, so that nobody takes it for complete', async (t) => {
  const path = journalIn(t);
  const { store, change } = open(path);
  change({ a: 'first body', b: 'second body' });
  const bytes = readFileSync(path);
  bytes[bytes.indexOf('second body')]! ^= 1;
  writeFileSync(path, bytes);
  t.false(await store.rewrite());
  await store.compact();
  const restarted = Edge.start(path);
  t.deepEqual(restarted.state, [['a', 'first body']]);
  t.is(restarted.position, undefined);
  await store.close();
});

test('a journal that is gone or unreadable is written anew from the table', async (t) => {
  const path = journalIn(t);
  const { store, change } = open(path);
  change({ a: 'one', b: 'one' });
  renameSync(path, `${path}.elsewhere`);
  t.true(await store.rewrite());
  t.is(Edge.start(path).position?.revision, 1n);
  writeFileSync(path, 'no journal');
  t.false(await store.rewrite(), 'what was in it is lost');
  await store.close();
});

test('property: whatever compiles or not, a restart after any compaction serves what served before', async (t) => {
  const step = fc.record({
    id: fc.constantFrom('a', 'b', 'c'),
    what: fc.constantFrom('good', 'broken', 'remove', 'settle', 'compact', 'reopen', 'snapshot'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
      const path = journalIn(t);
      let world = open(path);
      let count = 0;
      for (const { id, what } of steps) {
        const { store, edge, change } = world;
        count++;
        if (what === 'good') change({ [id]: `good ${count}` });
        else if (what === 'broken') change({ [id]: `${BROKEN} ${count}` });
        else if (what === 'remove') change({}, [id]);
        else if (what === 'settle') await store.settle(store.position, edge.listed());
        else if (what === 'compact') await store.compact();
        else if (what === 'snapshot') {
          const snapshot = store.startSnapshot();
          const bodies = { [id]: count % 2 === 0 ? `good ${count}` : `${BROKEN} ${count}` };
          snapshot.add([entry(id, bodies[id]!)]);
          await store.replace(snapshot, next(store, snapshot.sum.toBytes()));
          for (const other of ['a', 'b', 'c']) if (other !== id) edge.remove(other);
          edge.put(id, bodies[id]!);
        } else {
          await store.close();
          const { state } = edge;
          world = open(path);
          if (JSON.stringify(world.edge.state) !== JSON.stringify(state)) return false;
        }
      }
      await world.store.close();
      return JSON.stringify(Edge.start(path).state) === JSON.stringify(world.edge.state);
    }),
    { numRuns: 200 },
  );
  t.pass();
});
