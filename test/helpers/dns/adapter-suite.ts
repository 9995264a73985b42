// What every DNS adapter has to do, run against each of them with the server behind it: tests are declared by calling it.
import type { TestFn } from 'ava';
import type {
  Access,
  AdapterKind,
  Change,
  ChangeResult,
  DnsAdapter,
  RRset,
} from '../../../services/dns/adapters/adapter.ts';
import { type SingleRecord, setKey, setsByKey, ttlHolds } from '../../../services/dns/adapters/kit/sets.ts';
import { txtOf } from '../../../services/dns/adapters/txt.ts';
import { Random } from '../random.ts';
import type { Fault, FaultyProxy } from './faulty-proxy.ts';

export interface ServerUnderTest {
  /** Empty but for what every zone has. */
  zone: string;
  /** Another zone with 10,000 A records `h<number>`, or enough room for them; the suite fills what `fill` is given. */
  bigZone: string;
  access: Omit<Access, 'zone'>;
  /** The same with credentials that the server does not accept; null: it accepts all. */
  wrong: Omit<Access, 'zone'> | null;
  proxy: FaultyProxy;
  /** Adds records as somebody with the provider's own tools does. */
  add(zone: string, records: readonly SingleRecord[]): Promise<void>;
  /** Removes all records of a name and type in the same way. */
  remove(zone: string, name: string, type: string): Promise<void>;
  /** Values that the server answers; null: it is no server of names. */
  resolve: ((name: string, type: 'A' | 'TXT' | 'CNAME') => Promise<string[]>) | null;
  stop(): Promise<void>;
}

export interface SuiteOptions {
  kind: AdapterKind;
  start(): Promise<ServerUnderTest>;
  faults: readonly Fault[];
  /** Records of a page; null: the protocol has no pages. */
  page: number | null;
  /** A name that a page of the provider shows in Unicode is given to it so. */
  unicode: boolean;
  /** What `test` of an unknown zone fails with. */
  unknownZone: string;
  /** Whether a record beside a CNAME is refused: not every receiver and provider knows. */
  conflicts: boolean;
}

const TTL = 600;
const TIMEOUT_MS = 1_500;
const BIG = 10_000;
const RANDOM_STEPS = 60;

export function adapterSuite(test: TestFn, options: SuiteOptions): void {
  const { kind } = options;
  let server: ServerUnderTest;
  let count = 0;

  test.before('start', async () => {
    server = await options.start();
  });
  test.after.always('stop', async () => {
    await server?.stop();
  });

  const open = (zone = server.zone, access = server.access): DnsAdapter =>
    kind.open({ timeoutMs: TIMEOUT_MS, ...access, zone });
  /** A name that no other test has. */
  const fresh = (): string => `n${++count}.${server.zone}`;
  const set = (name: string, values: string[], type: 'A' | 'CNAME' | 'TXT' = 'A', ttl = TTL): Change => {
    return { action: 'set', name, type, ttl, values };
  };
  const states = (results: ChangeResult[]) => results.map(({ state }) => state);
  const errorOf = (result: ChangeResult | undefined) => (result && result.state !== 'done' ? result.error.kind : null);
  const make = async (changes: Change[], adapter = open()) => {
    const results = await adapter.apply(changes);
    for (const result of results) if (result.state !== 'done') throw result.error;
  };
  const at = async (name: string, type = 'A', adapter = open()): Promise<RRset | undefined> =>
    setsByKey(await adapter.list({ names: [name] })).get(setKey({ name, type }));
  const single = (name: string, type: string, value: string, ttl = TTL): SingleRecord => {
    return { name, type, line: 'default', ttl, value };
  };

  test.serial('sets are made, replaced whole and deleted, and every change may be repeated', async (t) => {
    const [one, two] = [fresh(), fresh()];
    const changes = [set(one, ['192.0.2.1', '192.0.2.2']), set(two, [one], 'CNAME')];
    for (let time = 0; time < 2; time++) {
      t.deepEqual(states(await open().apply(changes)), ['done', 'done']);
      t.like(await at(one), { ttl: TTL, values: ['192.0.2.1', '192.0.2.2'] });
      t.deepEqual((await at(two, 'CNAME'))?.values, [one]);
    }
    if (server.resolve) {
      t.deepEqual((await server.resolve(one, 'A')).sort(), ['192.0.2.1', '192.0.2.2']);
      t.deepEqual(await server.resolve(two, 'CNAME'), [one]);
    }
    await make([set(one, ['192.0.2.2', '192.0.2.3'], 'A', 1200)]);
    t.like(await at(one), { ttl: 1200, values: ['192.0.2.2', '192.0.2.3'] });
    await make([{ action: 'append', name: one, type: 'A', ttl: 1200, values: ['192.0.2.2', '192.0.2.4'] }]);
    t.deepEqual((await at(one))?.values, ['192.0.2.2', '192.0.2.3', '192.0.2.4']);
    for (let time = 0; time < 2; time++) {
      await make([{ action: 'delete', name: one, type: 'A', values: ['192.0.2.3', '192.0.2.9'] }]);
      t.deepEqual((await at(one))?.values, ['192.0.2.2', '192.0.2.4']);
    }
    for (let time = 0; time < 2; time++) {
      await make([
        { action: 'delete', name: one, type: 'A' },
        { action: 'delete', name: two, type: 'CNAME' },
      ]);
      t.is(await at(one), undefined);
      t.is(await at(two, 'CNAME'), undefined);
    }
    t.deepEqual(await open().apply([]), []);
  });

  test.serial('addresses become an alias and back in one call', async (t) => {
    const name = fresh();
    const target = `target.${server.zone}`;
    await make([set(name, ['192.0.2.1', '192.0.2.2'])]);
    await make([{ action: 'delete', name, type: 'A' }, set(name, [target], 'CNAME')]);
    t.is(await at(name), undefined);
    t.deepEqual((await at(name, 'CNAME'))?.values, [target]);
    await make([set(name, [`other.${server.zone}`], 'CNAME')]);
    await make([{ action: 'delete', name, type: 'CNAME' }, set(name, ['192.0.2.3'])]);
    t.deepEqual((await at(name))?.values, ['192.0.2.3']);
    t.is(await at(name, 'CNAME'), undefined);
  });

  test.serial('what others edit by hand is seen, put right and not in the way', async (t) => {
    const name = fresh();
    await make([set(name, ['192.0.2.1'])]);
    await server.add(server.zone, [single(name, 'A', '192.0.2.66')]);
    t.deepEqual((await at(name))?.values, ['192.0.2.1', '192.0.2.66']);
    await make([set(name, ['192.0.2.1'])]);
    t.deepEqual((await at(name))?.values, ['192.0.2.1']);
    await server.remove(server.zone, name, 'A');
    t.is(await at(name), undefined);
    await make([set(name, ['192.0.2.1'])]);
    await server.remove(server.zone, name, 'A');
    await make([{ action: 'delete', name, type: 'A' }]);
    t.is(await at(name), undefined);
  });

  test.serial('a validation record of another client stays, whatever is done beside it', async (t) => {
    const name = `_acme-challenge.${fresh()}`;
    await server.add(server.zone, [single(name, 'TXT', 'of-somebody-else', 60)]);
    const texts = txtOf(open());
    const { signal } = new AbortController();
    for (let time = 0; time < 2; time++) {
      await texts.add({ name, value: 'ours-1' }, signal);
      await texts.add({ name, value: 'ours-2' }, signal);
      t.deepEqual((await at(name, 'TXT'))?.values, ['of-somebody-else', 'ours-1', 'ours-2']);
    }
    if (server.resolve) {
      t.deepEqual((await server.resolve(name, 'TXT')).sort(), ['of-somebody-else', 'ours-1', 'ours-2']);
    }
    for (let time = 0; time < 2; time++) {
      await texts.remove({ name, value: 'ours-1' }, signal);
      t.deepEqual((await at(name, 'TXT'))?.values, ['of-somebody-else', 'ours-2']);
    }
    await texts.remove({ name, value: 'ours-2' }, signal);
    await server.add(server.zone, [single(name, 'TXT', 'added-later', 60)]);
    t.deepEqual((await at(name, 'TXT'))?.values, ['added-later', 'of-somebody-else']);
    await texts.remove({ name, value: 'added-later' }, signal);
  });

  test.serial('one change that cannot be made leaves the others of its batch done', async (t) => {
    const names = Array.from({ length: 9 }, fresh);
    const long = `${'x'.repeat(64)}.${server.zone}`;
    const changes = names.map((name, index) => set(name, [`192.0.2.${index + 1}`]));
    changes.splice(4, 0, set(long, ['192.0.2.200']));
    const results = await open().apply(changes);
    t.deepEqual(
      states(results),
      changes.map((change) => (change.name === long ? 'failed' : 'done')),
    );
    t.is(errorOf(results[4]), 'invalid');
    for (const [index, name] of names.entries()) t.deepEqual((await at(name))?.values, [`192.0.2.${index + 1}`]);
  });

  test.serial('a CNAME beside other records is refused, and those records stay', async (t) => {
    if (!options.conflicts) return t.pass();
    const [name, other] = [fresh(), fresh()];
    await server.add(server.zone, [single(name, 'A', '192.0.2.1')]);
    const results = await open().apply([set(other, ['192.0.2.5']), set(name, [other], 'CNAME')]);
    t.deepEqual(states(results), ['done', 'failed']);
    t.true(['conflict', 'invalid'].includes(errorOf(results[1])!));
    t.deepEqual((await at(name))?.values, ['192.0.2.1']);
    t.is(await at(name, 'CNAME'), undefined);
  });

  for (const fault of options.faults) {
    test.serial(`a change is made once when the exchange is spoiled: ${fault}`, async (t) => {
      const names = [fresh(), fresh()];
      const acme = `_acme-challenge.${fresh()}`;
      await make([set(names[1]!, ['192.0.2.9'])]);
      server.proxy.faults = [fault];
      await make([set(names[0]!, ['192.0.2.1', '192.0.2.2']), set(names[1]!, ['192.0.2.3'])]);
      t.deepEqual(server.proxy.faults, []);
      t.deepEqual((await at(names[0]!))?.values, ['192.0.2.1', '192.0.2.2']);
      t.deepEqual((await at(names[1]!))?.values, ['192.0.2.3']);
      server.proxy.faults = [fault];
      await make([{ action: 'append', name: acme, type: 'TXT', ttl: 60, values: ['one', 'two'] }]);
      t.deepEqual((await at(acme, 'TXT'))?.values, ['one', 'two']);
      server.proxy.faults = [fault];
      await make([{ action: 'delete', name: names[0]!, type: 'A' }]);
      t.is(await at(names[0]!), undefined);
    });
  }

  test.serial('a change of which nobody knows whether it was made is told so', async (t) => {
    const name = fresh();
    const adapter = open();
    const faults: Fault[] = ['unanswered', 'lost', 'lost', 'lost'];
    server.proxy.faults = [...faults];
    // Nothing can be read back either, from the moment the first write is swallowed.
    const muting = setInterval(() => {
      if (server.proxy.faults.length < faults.length) server.proxy.mute = true;
    }, 5);
    try {
      const [result] = await adapter.apply([set(name, ['192.0.2.1'])]);
      t.is(result?.state, 'unknown');
      t.is(errorOf(result), 'timeout');
    } finally {
      clearInterval(muting);
      server.proxy.faults = [];
      server.proxy.mute = false;
    }
    await make([set(name, ['192.0.2.1'])]);
    t.deepEqual((await at(name))?.values, ['192.0.2.1']);
  });

  test.serial('a TTL below the least one is raised, which is no drift', async (t) => {
    const name = fresh();
    await make([set(name, ['192.0.2.1'], 'A', 1)]);
    const found = (await at(name))!;
    t.true(found.ttl >= kind.capabilities.minTtl);
    t.true(ttlHolds(found.ttl, 1, kind.capabilities));
    t.false(ttlHolds(found.ttl, found.ttl + 100, kind.capabilities));
  });

  test.serial('wildcards and names in Unicode are listed as they are written', async (t) => {
    const idn = `xn--bcher-kva.${server.zone}`;
    const wild = `*.wild.${server.zone}`;
    const shown = options.unicode ? `bücher.${server.zone}` : idn;
    await server.add(server.zone, [single(shown, 'A', '192.0.2.1')]);
    t.deepEqual((await at(idn))?.values, ['192.0.2.1']);
    await make([set(idn, ['192.0.2.2']), set(wild, [idn], 'CNAME')]);
    t.deepEqual((await at(idn))?.values, ['192.0.2.2']);
    t.deepEqual((await at(wild, 'CNAME'))?.values, [idn]);
    await make([
      { action: 'delete', name: idn, type: 'A' },
      { action: 'delete', name: wild, type: 'CNAME' },
    ]);
    t.is(await at(wild, 'CNAME'), undefined);
  });

  test.serial('credentials that are not accepted, and a zone that is not there, are told apart', async (t) => {
    const { wrong } = server;
    if (wrong) {
      await t.throwsAsync(open(server.zone, wrong).test(), { message: /^denied/ });
      t.is(errorOf((await open(server.zone, wrong).apply([set(fresh(), ['192.0.2.1'])]))[0]), 'denied');
    }
    await t.throwsAsync(open('not-here.example').test(), { message: new RegExp(`^${options.unknownZone}`) });
    await t.throwsAsync(open(server.zone, { ...server.access, allow: [] }).test(), { message: /^address_refused/ });
    const { records } = await open().test();
    t.true(records > 0);
    if (kind.capabilities.listZones) t.true((await open().zones()).includes(server.zone));
    else await t.throwsAsync(open().zones(), { message: /^unsupported/ });
  });

  if (kind.capabilities.drift === 'serial') {
    test.serial('the serial changes with every change of records and with nothing else', async (t) => {
      const name = fresh();
      const first = await open().serial();
      t.is(await open().serial(), first);
      await make([set(name, ['192.0.2.1'])]);
      const second = await open().serial();
      t.not(second, first);
      await server.add(server.zone, [single(name, 'A', '192.0.2.66')]);
      t.not(await open().serial(), second);
    });
  }

  if (kind.capabilities.lines.length > 0) {
    test.serial('lines of a name are sets of their own, and unknown ones are only deleted', async (t) => {
      const name = fresh();
      const lines = kind.capabilities.lines;
      await make(lines.map((line, index) => ({ ...set(name, [`192.0.2.${index + 1}`]), line }) as Change));
      const sets = setsByKey(await open().list({ names: [name] }));
      for (const [index, line] of lines.entries()) {
        t.deepEqual(sets.get(setKey({ name, type: 'A', line }))?.values, [`192.0.2.${index + 1}`], line);
        t.is(sets.get(setKey({ name, type: 'A', line }))?.line, line === 'default' ? undefined : line);
      }
      await make([{ ...set(name, ['192.0.2.77']), line: 'unicom' } as Change]);
      await make([{ action: 'delete', name, type: 'A', line: 'telecom' }]);
      await server.add(server.zone, [{ ...single(name, 'A', '192.0.2.88'), line: 'other:unheard-of' }]);
      const now = (await open().list({ names: [name] })).filter((one) => one.name === name);
      const other = now.find(({ line }) => line?.startsWith('other:'));
      t.deepEqual(other?.values, ['192.0.2.88']);
      t.deepEqual(
        now
          .map(({ line = 'default' }) => line)
          .filter((line) => !line.startsWith('other:'))
          .sort(),
        lines.filter((line) => line !== 'telecom').toSorted(),
      );
      await make([{ action: 'delete', name, type: 'A', line: other!.line! }]);
      const left = (await open().list({ names: [name] })).filter((one) => one.name === name);
      t.is(left.length, lines.length - 1);
      t.deepEqual(left.find(({ line }) => line === 'unicom')?.values, ['192.0.2.77']);
    });
  }

  test.serial('random changes with faults lead to what a model says, and foreign records stay', async (t) => {
    const random = new Random(7);
    const names = Array.from({ length: 4 }, fresh);
    const foreign = fresh();
    await server.add(server.zone, [single(foreign, 'TXT', 'foreign')]);
    const model = new Map<string, Set<string>>();
    const values = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4'];
    for (let step = 0; step < RANDOM_STEPS; step++) {
      const changes = random.some(1, 3, (): Change => {
        const name = random.of(names);
        const given = [...new Set(random.some(1, 3, () => random.of(values)))].sort();
        const action = random.of(['set', 'append', 'delete'] as const);
        if (action === 'delete') {
          return { action, name, type: 'A', ...(random.chance(0.5) ? { values: given } : {}) };
        }
        return { action, name, type: 'A', ttl: TTL, values: given };
      });
      if (random.chance(0.15)) server.proxy.faults = [random.of(options.faults)];
      await make(changes);
      server.proxy.faults = [];
      for (const { action, name, ...change } of changes) {
        const before = model.get(name) ?? new Set();
        const given = change.values;
        if (action === 'set') model.set(name, new Set(given));
        else if (action === 'append') model.set(name, new Set([...before, ...given!]));
        else model.set(name, new Set(given ? [...before].filter((value) => !given.includes(value)) : []));
      }
    }
    const sets = setsByKey(await open().list());
    for (const name of names) {
      t.deepEqual(sets.get(setKey({ name, type: 'A' }))?.values ?? [], [...(model.get(name) ?? [])].sort(), name);
    }
    t.deepEqual(sets.get(setKey({ name: foreign, type: 'TXT' }))?.values, ['foreign']);
  });

  const sizes = options.page === null ? [] : [options.page, 1, options.page];
  test.serial('a zone is read whole at the border of a page, and with 10,000 records', async (t) => {
    const zone = server.bigZone;
    const address = (index: number) => `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`;
    const mine = async () => (await open(zone).list()).filter(({ type, name }) => type === 'A' && /^h[0-9]/.test(name));
    let made = 0;
    const grow = async (by: number) => {
      const records = Array.from({ length: by }, (_, index) =>
        single(`h${made + index}.${zone}`, 'A', address(made + index)),
      );
      for (let from = 0; from < by; from += 1_000) await server.add(zone, records.slice(from, from + 1_000));
      made += by;
    };
    // Records that every zone has count for the page, too.
    const always = (await open(zone).list()).reduce((sum, { values }) => sum + values.length, 0);
    for (const size of sizes) {
      await grow(made === 0 ? size - always : size);
      t.is((await mine()).length, made);
    }
    await grow(BIG - made);
    const all = await mine();
    t.is(all.length, BIG);
    t.is(new Set(all.map(({ name }) => name)).size, BIG);
    t.deepEqual(all.find(({ name }) => name === `h9999.${zone}`)?.values, [address(9_999)]);
    t.true((await open(zone).test()).records >= BIG);
    const name = `h5000.${zone}`;
    await make([set(name, ['192.0.2.1'])], open(zone));
    t.deepEqual((await at(name, 'A', open(zone)))?.values, ['192.0.2.1']);
    t.is((await mine()).length, BIG);
  });
}
