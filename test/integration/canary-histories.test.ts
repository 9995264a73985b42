// Which entries nodes of a canary and all others run, through any history: things of the test, rules, redirects, HTTPS,
// compression, the WAF and ports of sites, rules of the platform.
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { WAF_MODES } from '../../contract/resources/site-waf.ts';
import { listenPortsKind } from '../../models/clusters/listen-ports.entry.ts';
import { readConfigHead } from '../../models/config/config-history.ts';
import { beginEpoch } from '../../models/config/epoch.ts';
import { PLATFORM_RULES_KIND } from '../../models/rules/platform-rules.entry.ts';
import { SITE_RULES_KIND } from '../../models/rules/site-rules.entry.ts';
import { bulkRedirectsKind } from '../../models/sites/bulk-redirects.entry.ts';
import { siteKind } from '../../models/sites/site.entry.ts';
import { SITE_COMPRESSION_KIND } from '../../models/sites/site-compression.entry.ts';
import { SITE_HTTPS_KIND } from '../../models/sites/site-https.entry.ts';
import { SITE_WAF_KIND } from '../../models/waf/site-waf.entry.ts';
import { Track } from '../../proto/gen/svc/node/v1/config_pb.js';
import { systemCall } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { setListenPorts } from '../../services/listen-ports/listen-ports.ts';
import { rollBack } from '../../services/revisions/rollback.ts';
import {
  abort,
  addNode,
  converge,
  promote,
  save,
  setPolicy,
  switchThings,
  unswitch,
} from '../helpers/canary-cluster.ts';
import { CanaryModel, texts, type Version } from '../helpers/canary-model.ts';
import { ModelNode } from '../helpers/model-node.ts';
import { addCluster, createPipeline, type Pipeline, THING } from '../helpers/pipeline.ts';
import { TriedCertificates } from '../helpers/tried-certificates.ts';
import {
  type Changed,
  entryName,
  LAST_REDIRECT_LIST,
  LAST_RULE_LIST,
  PLATFORM_RULES,
  PORT_LISTS,
  shownBy,
  siteText,
  TriedPlatform,
  TriedSite,
  textsRun,
} from '../helpers/tried-resources.ts';

const FEATURES = [
  ...['canary-v1', 'every-third-v1', 'rules-v1', 'rules-v2'],
  ...['https-v1', 'http3-v1', 'compression-v1', 'edge-ports-v1', 'modsecurity-v1'],
];

let pipeline: Pipeline;
let runtime: Runtime;
let platform: TriedPlatform;
let certificates: TriedCertificates;

test.before(async () => {
  pipeline = await createPipeline();
  runtime = pipeline.runtime;
  platform = new TriedPlatform(runtime);
  certificates = await TriedCertificates.create(runtime);
  switchThings();
});
test.after.always(async () => {
  unswitch();
  await pipeline?.close();
});

const ID = fc.constantFrom('a', 'b', 'c', 'd/x', 'd/y');
const SITE = fc.constantFrom(0, 1);
const PORTS = fc.nat(PORT_LISTS.length - 1);
const record = <A extends string, T extends object>(act: A, more: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record({ act: fc.constant(act), ...more }) as fc.Arbitrary<{ act: A } & T>;
const step = fc.oneof(
  { weight: 4, arbitrary: record('save', { id: ID, version: fc.integer({ min: 1, max: 4 }), on: fc.boolean() }) },
  { weight: 1, arbitrary: record('remove', { id: ID }) },
  { weight: 3, arbitrary: record('rules', { site: SITE, list: fc.nat(LAST_RULE_LIST) }) },
  { weight: 3, arbitrary: record('redirects', { site: SITE, list: fc.nat(LAST_REDIRECT_LIST) }) },
  { weight: 2, arbitrary: record('platform', { list: fc.nat(LAST_RULE_LIST) }) },
  {
    weight: 3,
    arbitrary: record('https', { site: SITE, certificate: fc.constantFrom(null, 0, 1), http3: fc.boolean() }),
  },
  { weight: 1, arbitrary: record('compression', { site: SITE, level: fc.nat(2) }) },
  {
    weight: 2,
    arbitrary: record('waf', { site: SITE, mode: fc.constantFrom(...WAF_MODES), paranoiaLevel: fc.constantFrom(1, 2) }),
  },
  { weight: 2, arbitrary: record('replace', { certificate: fc.constantFrom(0, 1) }) },
  { weight: 1, arbitrary: record('listen', { list: PORTS }) },
  { weight: 2, arbitrary: record('ports', { site: SITE, list: PORTS }) },
  { weight: 1, arbitrary: record('delete', { site: SITE }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constantFrom('end', 'promote', 'abort') }) },
  { weight: 1, arbitrary: record('policy', { enabled: fc.boolean() }) },
  { weight: 2, arbitrary: record('rollback', { to: fc.nat() }) },
  { weight: 1, arbitrary: record('epoch', {}) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A cluster, and what its nodes should run. */
interface World {
  clusterId: string;
  model: CanaryModel;
  /** Null once it is deleted. */
  sites: (TriedSite | null)[];
  /** What the cluster listens on with TLS besides 443, as it is saved. */
  ports: readonly number[];
}

async function newWorld(name: string): Promise<World> {
  const clusterId = await addCluster(runtime);
  await addNode(runtime, clusterId, name, { isCanary: true, features: FEATURES });
  const model = new CanaryModel(platform.published, (entry) => entry === PLATFORM_RULES || entry === LISTEN_PORTS);
  const names = [`${name}-a`, `${name}-b`];
  const sites: TriedSite[] = [];
  for (const [index, siteName] of names.entries()) {
    sites.push(await TriedSite.create(runtime, clusterId, siteName));
    model.save(sites[index]!.name, siteText(siteName, []));
  }
  return { clusterId, model, sites, ports: [] };
}

const thing = (id: string) => entryName(THING, id);
const LISTEN_PORTS = entryName(listenPortsKind.kind, '');

/** Of a save that is refused so nothing comes. */
async function unless(codes: readonly string[], saving: Promise<Changed> | undefined): Promise<Changed> {
  try {
    return (await saving) ?? new Map();
  } catch (error) {
    if (!codes.includes((error as { type?: string }).type ?? '')) throw error;
    return new Map();
  }
}

async function listen(world: World, list: number): Promise<Changed> {
  const httpsPorts = [...PORT_LISTS[list]!];
  await setListenPorts(runtime, { clusterId: world.clusterId, httpPorts: [], httpsPorts }, systemCall('test'));
  world.ports = httpsPorts;
  return listened(world);
}

/** What the cluster listens on as it is saved, which nodes get also when it is saved again, or a site with ports of its own. */
const listened = ({ ports }: World): Changed => new Map([[LISTEN_PORTS, ports.length > 0 ? ports.join(' ') : null]]);

async function take(t: ExecutionContext, world: World, taken: Step): Promise<void> {
  const { clusterId, model, sites } = world;
  const saved = (changed: Changed = new Map()) => {
    for (const [name, text] of changed) model.save(name, text);
  };
  switch (taken.act) {
    case 'save': {
      const settings = { version: taken.version, on: taken.on };
      await save(runtime, clusterId, taken.id, settings);
      return model.save(thing(taken.id), settings);
    }
    case 'remove':
      await save(runtime, clusterId, taken.id, null);
      return model.save(thing(taken.id), null);
    case 'rules':
      return saved(await sites[taken.site]?.saveRules(taken.list));
    case 'redirects':
      return saved(await sites[taken.site]?.saveRedirects(taken.list));
    case 'platform':
      return saved(await platform.saveRules(taken.list, clusterId));
    case 'https': {
      const { certificate, http3 } = taken;
      const certificateId = certificate === null ? null : certificates.ids[certificate]!;
      const saving = sites[taken.site]?.saveHttps({ certificateId, http3 });
      return saved(await unless(['SITE_HTTPS_PORT_NEEDS_CERTIFICATE'], saving));
    }
    case 'compression':
      return saved(await sites[taken.site]?.saveHttps({ gzipLevel: taken.level }));
    case 'waf':
      return saved(await sites[taken.site]?.saveWaf({ mode: taken.mode, paranoiaLevel: taken.paranoiaLevel }));
    case 'replace':
      return certificates.replace(taken.certificate, clusterId);
    case 'listen':
      return saved(await unless(['LISTEN_PORT_IN_USE'], listen(world, taken.list)));
    case 'ports': {
      const saving = sites[taken.site]?.savePorts(PORT_LISTS[taken.list]!);
      const changed = await unless(['SITE_PORT_UNAVAILABLE', 'SITE_HTTPS_PORT_NEEDS_CERTIFICATE'], saving);
      if (changed.size > 0 && PORT_LISTS[taken.list]!.length > 0) saved(listened(world));
      return saved(changed);
    }
    case 'delete':
      for (const name of (await sites[taken.site]?.delete()) ?? []) model.end(name);
      sites[taken.site] = null;
      return;
    case 'end':
      await runtime.pools.api('test_thing').where({ cluster_id: clusterId }).whereLike('id', 'd/%').delete();
      await save(runtime, clusterId, 'd/x', null, true);
      for (const id of ['d/x', 'd/y']) model.end(thing(id));
      return;
    case 'policy':
      if (!taken.enabled && model.running) {
        await promote(runtime, clusterId);
        model.promote();
      }
      await setPolicy(runtime, clusterId, taken.enabled);
      model.enabled = taken.enabled;
      return;
    case 'rollback': {
      const revisions = [...model.published.keys()];
      const revision = revisions[taken.to % Math.max(1, revisions.length)];
      return revision === undefined ? undefined : rollTo(t, world, revision);
    }
    case 'epoch':
      await beginEpoch(runtime.pools.api, 'test');
      return;
    default:
      if (!model.running) return;
      if (taken.act === 'promote') {
        await promote(runtime, clusterId);
        model.promote();
      } else {
        await abort(runtime, clusterId);
        model.abort();
      }
  }
}

/** A revision with a site that is deleted, or a port that is gone, cannot come back: nobody's entries move then. */
async function rollTo(t: ExecutionContext, { clusterId, model, sites, ports }: World, revision: string): Promise<void> {
  const there = new Set(sites.map((site) => site?.name));
  const rolling = rollBack(runtime, { id: clusterId, revision }, systemCall('test'));
  const lost = [...model.published.get(revision)!.keys()].filter(
    (name) => name.startsWith('site ') && !there.has(name),
  );
  const offered = portsOf(model.stable).intersection(new Set(ports));
  const unbound = [...model.published.get(revision)!].filter(
    ([name, text]) =>
      name.startsWith('site ') && text !== model.stable.get(name) && portsIn(text).some((port) => !offered.has(port)),
  );
  if (lost.length + unbound.length === 0) {
    await rolling;
    model.rollBack(revision);
  } else t.like(await t.throwsAsync(rolling), { type: 'ROLLBACK_RESOURCE_UNAVAILABLE' } as object);
}

const portsIn = (text: Version) => (typeof text === 'string' ? text.split(' ').slice(1).map(Number) : []);

/** What nodes that run these listen on. */
const portsOf = (versions: ReadonlyMap<string, Version>) =>
  new Set(
    String(versions.get(LISTEN_PORTS) ?? '')
      .split(' ')
      .filter(Boolean)
      .map(Number),
  );

/** Whatever is tried and put back, a node listens on each port that one of its sites has. */
function assertPorts(t: ExecutionContext, node: ModelNode): void {
  const run = new Map<string, Version>(Object.entries(textsRun(node)));
  const bound = [...run].flatMap(([name, text]) => (name.startsWith(`${siteKind.kind} `) ? portsIn(text) : []));
  t.deepEqual(
    bound.filter((port) => !portsOf(run).has(port)),
    [],
  );
}

/** One in which each kind is tried, promoted, aborted and rolled back, with all nodes awake. */
const EACH: [Step, number][] = (
  [
    { act: 'policy', enabled: true },
    { act: 'save', id: 'a', version: 1, on: true },
    { act: 'rules', site: 0, list: 1 },
    { act: 'redirects', site: 0, list: 0b0111 },
    { act: 'platform', list: 1 },
    { act: 'listen', list: 2 },
    { act: 'https', site: 0, certificate: 0, http3: false },
    { act: 'compression', site: 0, level: 2 },
    { act: 'waf', site: 0, mode: 'detect', paranoiaLevel: 2 },
    { act: 'ports', site: 0, list: 1 },
    { act: 'replace', certificate: 0 },
    { act: 'promote' },
    { act: 'https', site: 0, certificate: 1, http3: true },
    { act: 'replace', certificate: 1 },
    { act: 'replace', certificate: 0 },
    { act: 'rules', site: 0, list: 2 },
    { act: 'redirects', site: 0, list: 0b1001 },
    { act: 'platform', list: 2 },
    { act: 'waf', site: 0, mode: 'block', paranoiaLevel: 2 },
    { act: 'abort' },
    { act: 'rules', site: 1, list: 3 },
    { act: 'redirects', site: 0, list: 0b0010 },
    { act: 'platform', list: 3 },
    { act: 'promote' },
    { act: 'rules', site: 0, list: 0 },
    { act: 'platform', list: 0 },
    { act: 'waf', site: 0, mode: 'off', paranoiaLevel: 1 },
    { act: 'rollback', to: 4 },
    { act: 'delete', site: 1 },
    { act: 'rollback', to: 1 },
  ] satisfies Step[]
).map((taken) => [taken, 15]);

/** Ports that an abort took back come again with the site that uses them, or when they are saved as they are. */
const PORTS_AGAIN: [Step, number][] = (
  [
    { act: 'https', site: 0, certificate: 0, http3: false },
    { act: 'policy', enabled: true },
    { act: 'listen', list: 2 },
    { act: 'abort' },
    { act: 'ports', site: 0, list: 1 },
    { act: 'promote' },
    { act: 'ports', site: 0, list: 0 },
    { act: 'listen', list: 0 },
    { act: 'promote' },
    { act: 'listen', list: 1 },
    { act: 'rollback', to: 5 },
    { act: 'listen', list: 1 },
    { act: 'promote' },
    { act: 'rollback', to: 5 },
  ] satisfies Step[]
).map((taken) => [taken, 15]);

/** Whatever is tried and put back, nobody is told to show a certificate that was replaced. */
function assertCertificates(t: ExecutionContext, node: ModelNode): void {
  for (const [id, shown] of shownBy(node)) t.deepEqual([...shown], [certificates.fingerprints.get(id)]);
}

const TRIED = [
  ...[THING, siteKind.kind, SITE_RULES_KIND, PLATFORM_RULES_KIND, bulkRedirectsKind.kind],
  ...[SITE_HTTPS_KIND, SITE_COMPRESSION_KIND, SITE_WAF_KIND, listenPortsKind.kind],
].sort();

test('whatever happens, each node runs exactly the versions of its track', async (t) => {
  let trial = 0;
  const tried = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(step, fc.nat({ max: 15 })), { minLength: 4, maxLength: 22 }),
      async (history) => {
        const world = await newWorld(`tries-${++trial}`);
        const { clusterId, model } = world;
        const nodes = Array.from({ length: 4 }, () => new ModelNode(clusterId));
        for (const [taken, awake] of history) {
          await take(t, world, taken);
          const head = (await readConfigHead(runtime.pools.channel, clusterId))!;
          t.is(head.canary !== null, model.running);
          for (const name of model.overlay.keys()) tried.add(name.split(' ')[0]!);
          model.published.set(String(head.revision), new Map(model.stable));
          // Two nodes of the canary and two others, of which some are away.
          for (const [at, node] of nodes.entries()) {
            if (((awake >> at) & 1) === 0) continue;
            const tries = at % 2 === 0;
            await converge(runtime, node, tries ? Track.CANARY : Track.STABLE);
            t.deepEqual(textsRun(node), texts(tries ? model.candidate : model.stable));
            assertCertificates(t, node);
            assertPorts(t, node);
          }
        }
        for (const [at, node] of nodes.entries()) {
          const tries = at % 2 === 0;
          await converge(runtime, node, tries ? Track.CANARY : Track.STABLE);
          t.deepEqual(textsRun(node), texts(tries ? model.candidate : model.stable));
          assertCertificates(t, node);
          assertPorts(t, node);
          // A node without anything gets the same.
          const fresh = new ModelNode(clusterId);
          await converge(runtime, fresh, tries ? Track.CANARY : Track.STABLE);
          t.deepEqual(textsRun(fresh), textsRun(node));
        }
      },
    ),
    { numRuns: 25, examples: [[EACH], [PORTS_AGAIN]] },
  );
  t.deepEqual([...tried].sort(), TRIED);
});
