// Random reconciles with faults against a model: whatever fails and wherever it ends, no foreign record changes, no name that
// stays loses its last record, and a run without faults brings the zone to what was decided.
import test from 'ava';
import fc from 'fast-check';
import { AdapterError, type RRset } from '../../../../services/dns/adapters/adapter.ts';
import type { Wanted } from '../../../../services/scheduler/plan.ts';
import { reconcileZone, Superseded } from '../../../../services/scheduler/reconcile.ts';
import { FAULTS, type Fault, Killed, ModelRegistry, ModelZone } from '../../../helpers/dns-zone-model.ts';

const RUNS = 10_000;
const OWN_NAMES = ['all', 'eu', 'us', 's1', 's2', 's3', 's4'].map((label) => `${label}.cdn.example.com`);
const FOREIGN: readonly RRset[] = [
  { name: 'example.com', type: 'NS', ttl: 60, values: ['ns.example.com'] },
  { name: 'example.com', type: 'A', ttl: 60, values: ['198.51.100.1'] },
  { name: '_acme-challenge.cdn.example.com', type: 'TXT', ttl: 60, values: ['token'] },
  { name: 'eu.cdn.example.com', type: 'TXT', ttl: 60, values: ['a note'] },
  { name: 'www.cdn.example.com', type: 'CNAME', ttl: 60, values: ['elsewhere.example.net'] },
  // A name that the cluster will want, too.
  { name: 's4.cdn.example.com', type: 'A', ttl: 60, values: ['198.51.100.2'] },
];

const address = fc.constantFrom('203.0.113.1', '203.0.113.2', '203.0.113.3', '203.0.113.4');
const address6 = fc.constantFrom('2001:db8::1', '2001:db8::2');
const values = <T extends string>(one: fc.Arbitrary<T>) => fc.uniqueArray(one, { minLength: 1, maxLength: 3 });
const ofName = (name: string): fc.Arbitrary<Wanted[]> =>
  fc.oneof(
    values(address).map((list): Wanted[] => [{ name, type: 'A', line: 'default', ttl: 60, values: list }]),
    values(address6).map((list): Wanted[] => [{ name, type: 'AAAA', line: 'default', ttl: 60, values: list }]),
    fc.tuple(values(address), values(address)).map(([one, other]): Wanted[] => [
      { name, type: 'A', line: 'default', ttl: 60, values: one },
      { name, type: 'A', line: 'telecom', ttl: 60, values: other },
    ]),
    fc.constant<Wanted[]>([{ name, type: 'CNAME', line: 'default', ttl: 60, values: ['all.cdn.example.com'] }]),
  );
const desired = fc
  .tuple(...OWN_NAMES.map((name) => fc.option(ofName(name), { nil: [] as Wanted[] })))
  .map((sets) => sets.flat());
/** A zone that is read as empty three times in a row is believed. */
const faults = fc
  .array(fc.constantFrom<Fault>(...FAULTS, 'none', 'none'), { maxLength: 8 })
  .map((list) =>
    list.filter(
      (fault, index) => fault !== 'empty_list' || list.slice(0, index).filter((one) => one === fault).length < 2,
    ),
  );
/** Somebody changes or removes a record of ours by hand, which a later run repairs. */
const edit = fc.record({ pick: fc.nat(), values: fc.option(values(address), { nil: null }) });
const step = fc.record({ desired, faults, edit: fc.option(edit, { nil: null }), second: fc.boolean() });
const history = fc.array(step, { minLength: 2, maxLength: 5 });

const wantsOf = (sets: readonly Wanted[]) => new Map(sets.map((set) => [set.name, set.type === 'CNAME']));

test('10,000 random reconciles with faults touch nothing foreign, empty no name and converge', async (t) => {
  t.timeout(120_000);
  let reconciles = 0;
  while (reconciles < RUNS) {
    await fc.assert(
      fc.asyncProperty(history, async (steps) => {
        const zone = new ModelZone();
        const registry = new ModelRegistry();
        for (const set of FOREIGN) zone.put(set);
        const foreign = new Set(FOREIGN.map((set) => ModelZone.key(set)));
        const foreignState = () => zone.snapshot().filter((line) => foreign.has(line.split(' ').slice(0, 3).join(' ')));
        const before = foreignState();
        const run = async (sets: readonly Wanted[], epoch: () => boolean) => {
          reconciles++;
          const signal = new AbortController().signal;
          const common = { adapter: zone, registry, minTtl: 1, maxTtl: 3600, fresh: true, signal, pauseMs: 0 };
          try {
            await reconcileZone({ ...common, desired: sets, mayGoOn: async () => epoch() });
          } catch (error) {
            if (!(error instanceof AdapterError || error instanceof Killed || error instanceof Superseded)) throw error;
          }
        };
        for (const [index, { desired: sets, faults: given, edit: hand, second }] of steps.entries()) {
          const wants = wantsOf(sets);
          // Names with records now that stay: of each, at least one record is there after every change.
          const kept = [...wants.keys()].filter((name) => zone.hasAddress(name));
          const isCname = (name: string) =>
            [...zone.sets.values()].some((set) => set.name === name && set.type === 'CNAME');
          const exempt = new Set(kept.filter((name) => isCname(name) !== wants.get(name)));
          zone.onChange = () => {
            for (const name of kept) {
              if (!exempt.has(name) && !zone.hasAddress(name)) throw new Error(`${name} is empty`);
            }
          };
          zone.faults = [...given];
          if (second) {
            // The first engine hangs: a second one takes over, and the first may make no call any more.
            let [owner, asked] = [1, 0];
            const first = run(sets, () => {
              if (++asked === 2) owner = 2;
              return owner === 1;
            });
            await first;
          }
          await run(sets, () => true);
          if (hand) {
            const ours = [...zone.sets.entries()].filter(
              ([key, set]) =>
                !foreign.has(key) && registry.names.get(set.name)?.written && wants.get(set.name) === false,
            );
            const [key, set] = ours[hand.pick % Math.max(1, ours.length)] ?? [];
            if (key !== undefined && set!.type === 'A') {
              if (hand.values === null) zone.sets.delete(key);
              else zone.put({ ...set!, values: hand.values });
            }
          }
          zone.onChange = () => undefined;
          zone.faults = [];
          // Hand edits may leave a name as anything; a run without faults repairs all of it.
          await run(sets, () => true);
          t.deepEqual(foreignState(), before, `step ${index}: foreign records`);
          const wanted = sets
            .filter(({ name }) => name !== 's4.cdn.example.com')
            // Beside the note of somebody else there cannot be a CNAME.
            .filter(({ name, type }) => !(name === 'eu.cdn.example.com' && type === 'CNAME'))
            .map((set) => `${ModelZone.key(set)} ${[...set.values].sort().join(',')}`)
            .sort();
          const contested = sets.some(({ name, type }) => name === 'eu.cdn.example.com' && type === 'CNAME');
          const found = zone
            .snapshot()
            .filter((line) => !foreign.has(line.split(' ').slice(0, 3).join(' ')))
            .filter((line) => !(contested && line.startsWith('eu.')));
          t.deepEqual(found, wanted, `step ${index}: what was decided`);
        }
      }),
      { numRuns: 500 },
    );
  }
  t.log(`${reconciles} reconciles`);
});
