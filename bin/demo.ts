// `npm run demo`: a whole installation on this machine, set up through its own API, with a site to try things on.
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { buildCaddy, caddyPath } from './lib/caddy.ts';
import { findCommand } from './lib/commands.ts';
import { migrateWithProgress, startConsoleProcess } from './lib/console-process.ts';
import { type DataFolder, openDataFolder, removeDataFolder } from './lib/data-folder.ts';
import { installPackages } from './lib/debian.ts';
import { issueByPebble } from './lib/demo-acme.ts';
import { demoAuthority } from './lib/demo-authority.ts';
import { ensureHttps } from './lib/demo-https.ts';
import { type DemoFacts, DemoMemory } from './lib/demo-state.ts';
import * as steps from './lib/demo-steps.ts';
import { demoText, waitingText } from './lib/demo-text.ts';
import { edgePids, enroll, enrolledNode, stopLeftoverEdge, superviseEdge, waitForEdge } from './lib/edge-process.ts';
import { geoipDatabases, geoipVariables } from './lib/geoip/databases.ts';
import { startPebble } from './lib/pebble.ts';
import { hasIpv6 } from './lib/ports.ts';
import { preflight } from './lib/preflight.ts';
import type { Child } from './lib/processes.ts';
import { during, Refusal, report, say } from './lib/progress.ts';
import { downloadsDir, root } from './lib/root.ts';
import { installShutdown } from './lib/shutdown.ts';
import { startStores } from './lib/stores.ts';
import { buildWebConsole } from './lib/web-console.ts';

const HELP = `Usage: npm run demo [-- OPTIONS]

Starts PostgreSQL, Redis, the console, an edge node and an origin on this machine. Creates a site and prints commands to
try. The data folder keeps everything: the next start has the same addresses, keys and sites. The site also has HTTPS, with a
certificate of a certificate authority (CA) that the first start makes, or of Pebble with --acme. The demo prints the CA's file.

  --data DIR        data folder (default data/demo); two demos run beside each other with two folders
  --fresh           delete the data folder first, if it is a demo's and no demo runs in it
  --acme            start Pebble, a CA for tests, which issues the site's certificate over ACME
  --external        use DATABASE_URL and REDIS_URL instead of starting servers
  --kernel          drop banned addresses in the kernel too (needs root and nft), and listen on every address
  --no-edge-build   use the existing edge binary and never build one
  --help            print this text

The edge runs with --proxy-peers for loopback: in the client address mode proxy_protocol, only clients from there may send a
PROXY header. An edge without the option accepts a PROXY header of any client. Then no address in it is exempt from bans,
limits and challenges.`;

const { values } = parseArgs({
  options: {
    data: { type: 'string', default: 'data/demo' },
    fresh: { type: 'boolean', default: false },
    acme: { type: 'boolean', default: false },
    external: { type: 'boolean', default: false },
    kernel: { type: 'boolean', default: false },
    'no-edge-build': { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

const DELIVERY_TIMEOUT_MS = 60_000;
const WATCH_EVERY_MS = 1000;

function externalStores(): { databaseUrl?: string; redisUrl?: string } {
  if (!values.external) return {};
  const { DATABASE_URL, REDIS_URL } = process.env;
  if (!DATABASE_URL || !REDIS_URL) throw new Refusal('--external needs DATABASE_URL and REDIS_URL in the environment');
  return { databaseUrl: DATABASE_URL, redisUrl: REDIS_URL };
}

interface Ports {
  console: number;
  nodeChannel: number;
  metrics: number;
  edge: number;
  edgeHttps: number;
  origin: number;
}

async function pickPorts(folder: DataFolder): Promise<Ports> {
  return {
    console: await folder.ports.pick('console', 3000),
    nodeChannel: await folder.ports.pick('node channel', 8443),
    metrics: await folder.ports.pick('metrics listener', 9464),
    edge: await folder.ports.pick('edge', 8080),
    // HTTP/3 takes the UDP port of the same number.
    edgeHttps: await folder.ports.pick('edge with TLS', 8444, true),
    origin: await folder.ports.pick('origin', 8090),
  };
}

/** The console's environment; nothing of ours is taken over from the shell, so that a demo is always the same. */
async function consoleEnv(
  folder: DataFolder,
  ports: Ports,
  stores: { databaseUrl: string; redisUrl: string },
): Promise<NodeJS.ProcessEnv> {
  const { PATH, HOME, LANG, TZ, NODE_COMPILE_CACHE, LOG_LEVEL } = process.env;
  return {
    ...Object.fromEntries(
      Object.entries({ PATH, HOME, LANG, TZ, NODE_COMPILE_CACHE, LOG_LEVEL }).filter(([, value]) => value),
    ),
    DATABASE_URL: stores.databaseUrl,
    REDIS_URL: stores.redisUrl,
    SVC_MASTER_KEY: folder.secrets.masterKey,
    SVC_PUBLIC_URL: `http://localhost:${ports.console}`,
    SVC_DOWNLOADS_DIR: downloadsDir,
    ...(await geoipVariables()),
    SVC_NODE_API_URL: `https://localhost:${ports.nodeChannel}`,
    HOST: '127.0.0.1',
    PORT: String(ports.console),
    NODE_API_HOST: '127.0.0.1',
    NODE_API_PORT: String(ports.nodeChannel),
    METRICS_PORT: String(ports.metrics),
  };
}

async function edgeBinary(): Promise<string> {
  if (!values['no-edge-build']) return buildCaddy();
  return caddyPath();
}

function edgeIsBuilt(): boolean {
  return existsSync(caddyPath());
}

async function checkKernel(): Promise<void> {
  if (process.getuid?.() !== 0)
    throw new Refusal(
      '--kernel needs root, because nftables drops the packets of banned addresses. Omit it, or run as root.',
    );
  if (!findCommand('nft')) await installPackages(['nftables']);
}

function startOrigin(folder: DataFolder, port: number): Child {
  const child = folder.processes.start({
    name: 'origin',
    command: process.execPath,
    args: [resolve(root, 'bin/demo-origin.ts'), String(port)],
    logFile: folder.log('origin'),
  });
  child.keepRunning();
  return child;
}

async function waitUntilLive(
  client: Awaited<ReturnType<typeof steps.becomeOperator>>,
  siteId: string,
  ports: Pick<Ports, 'edge' | 'edgeHttps'>,
  ca?: string,
): Promise<void> {
  const answersHttps = async () =>
    !(await steps.hasCertificate(client, siteId)) ||
    (await steps.siteStatus('https', steps.SITE_HOST, ports.edgeHttps, ca)) === 200;
  const deadline = Date.now() + DELIVERY_TIMEOUT_MS;
  for (;;) {
    const state = await steps.deliveryState(client, siteId);
    // A site somebody disabled in an earlier session stays as it was left.
    if (state === 'disabled') return;
    const status = await steps.siteStatus('http', steps.SITE_HOST, ports.edge);
    // Somebody may have it redirect to HTTPS.
    if (state === 'live' && status >= 200 && status < 400 && (await answersHttps())) return;
    if (Date.now() > deadline) {
      say(
        `the site is not served yet: delivery is ${state}, the edge responds with ${status || 'nothing'}; see the logs folder`,
      );
      return;
    }
    await delay(100);
  }
}

async function enrolWhenNeeded(
  client: Awaited<ReturnType<typeof steps.becomeOperator>>,
  memory: DemoMemory,
  stateDir: string,
  server: string,
) {
  const present = enrolledNode(stateDir);
  if (present && memory.state.node?.id === present.nodeId && present.serverUrl === server) return;
  await during('enrolling this machine as an edge node', async () => {
    await enroll(stateDir, await steps.newEnrollmentToken(client, memory));
    const enrolled = enrolledNode(stateDir);
    if (!enrolled) throw new Error('the enrollment wrote no identity');
    memory.save({ node: { id: enrolled.nodeId, server } });
  });
}

/** Has the site's certificate issued by an authority of this machine, whose file the demo names from then on. */
async function issueFrom(
  folder: DataFolder,
  client: Awaited<ReturnType<typeof steps.becomeOperator>>,
  memory: DemoMemory,
  ports: Ports,
  facts: DemoFacts,
): Promise<void> {
  const pebble = await startPebble({
    processes: folder.processes,
    folder: folder.file('pebble'),
    ports: {
      acme: await folder.ports.pick('Pebble', 14_000),
      management: await folder.ports.pick('management of Pebble', 15_000),
      dns: await folder.ports.pick('name server of Pebble', 8053),
      dnsManagement: await folder.ports.pick('management of the name server', 8055),
    },
    httpPort: ports.edge,
  });
  facts.caFile = folder.file('acme-ca.pem');
  await during('the certificate from Pebble', async () => {
    const chosen = await issueByPebble(client, memory, pebble, facts.caFile);
    await waitUntilLive(client, facts.site.id, ports, chosen ? pebble.rootPem : undefined);
  });
}

/** Keeps the process ids in demo.json true while processes are started again. */
function watchPids(facts: DemoFacts, memory: DemoMemory, consoleChild: Child, edge: Child, stop: AbortSignal): void {
  const timer = setInterval(() => {
    const pids = {
      console: consoleChild.pid,
      ...(edgePids(edge.pid) ?? { agent: facts.pids.agent, caddy: facts.pids.caddy }),
    };
    if (JSON.stringify(pids) === JSON.stringify(facts.pids)) return;
    facts.pids = pids;
    memory.publish(facts);
  }, WATCH_EVERY_MS);
  stop.addEventListener('abort', () => clearInterval(timer));
}

async function main(): Promise<void> {
  const path = resolve(root, values.data);
  const given = externalStores();
  await preflight({ dataDir: path, redis: !given.redisUrl, caddy: true });
  if (values.kernel) await checkKernel();
  if (values.fresh) await removeDataFolder(path);
  const folder = await openDataFolder(path);
  const memory = new DemoMemory(folder.file('state.json'), folder.file('demo.json'));
  memory.withdraw();
  const shutdown = installShutdown(async () => {
    folder.lock.stopping();
    memory.withdraw();
    await folder.processes.stopAll();
    folder.lock.release();
  });
  try {
    await run(folder, memory, given, shutdown.signal, (name) => shutdown.begin(`${name} has ended permanently`, 1));
  } catch (error) {
    if (shutdown.signal.aborted) return;
    report(error);
    shutdown.begin('the start failed', 1);
  }
}

async function run(
  folder: DataFolder,
  memory: DemoMemory,
  given: { databaseUrl?: string; redisUrl?: string },
  stopping: AbortSignal,
  lost: (name: string) => void,
): Promise<void> {
  say(`demo in ${folder.path}`);
  await stopLeftoverEdge(folder.file('edge'));
  const ports = await pickPorts(folder);
  const stores = await startStores(folder, given);
  await migrateWithProgress(stores.databaseUrl);
  await buildWebConsole();
  const logFile = folder.log('console');
  const localUrl = `http://127.0.0.1:${ports.console}`;
  const publicUrl = `http://localhost:${ports.console}`;
  const nodeApiUrl = `https://localhost:${ports.nodeChannel}`;
  const consoleChild = await startConsoleProcess(folder.processes, await consoleEnv(folder, ports, stores), localUrl, {
    logFile,
  });
  const origin = startOrigin(folder, ports.origin);
  const client = await steps.becomeOperator(localUrl, publicUrl, logFile, memory);
  await steps.configure(client, memory);
  await steps.ensureSite(client, memory, ports.origin);
  const authority = await demoAuthority(folder.file('demo-ca.pem'), folder.file('demo-ca.key'), new Date());
  if (!values.acme) await ensureHttps(client, memory, authority);
  // Minutes the first time: whoever waits looks around meanwhile.
  if (!edgeIsBuilt()) say(waitingText(publicUrl, memory.state.operator));
  const caddy = await edgeBinary();
  const stateDir = folder.file('edge');
  await enrolWhenNeeded(client, memory, stateDir, nodeApiUrl);
  const hosts = values.kernel ? [''] : ['127.0.0.1', ...((await hasIpv6()) ? ['[::1]'] : [])];
  const edge = superviseEdge({
    processes: folder.processes,
    stateDir,
    logFile: folder.log('edge'),
    caddy,
    geoip: await geoipDatabases(),
    listen: hosts.map((host) => `${host}:${ports.edge}`),
    httpsListen: hosts.map((host) => `${host}:${ports.edgeHttps}`),
    kernelBans: values.kernel ? 'on' : 'off',
    proxyPeers: steps.LOOPBACK,
  });
  const pids = await during('edge node', () => waitForEdge(edge));
  const { site, node, accessKey, clusterId, operator } = memory.state;
  if (!site || !node || !accessKey || !clusterId) throw new Error('a step of the demo wrote no result');
  await during('the site at the edge', () => waitUntilLive(client, site.id, ports));
  const facts: DemoFacts = {
    consoleUrl: publicUrl,
    nodeApiUrl,
    accessKey,
    operator: { email: operator.email, password: operator.password },
    clusterId,
    nodeId: node.id,
    edge: { http: `127.0.0.1:${ports.edge}`, https: `127.0.0.1:${ports.edgeHttps}` },
    caFile: authority.file,
    origin: `127.0.0.1:${ports.origin}`,
    clientIpHeader: steps.CLIENT_IP_HEADER,
    site,
    pids: { console: consoleChild.pid, ...pids },
  };
  if (values.acme) await issueFrom(folder, client, memory, ports, facts);
  if (stopping.aborted) return;
  memory.publish(facts);
  watchPids(facts, memory, consoleChild, edge, stopping);
  for (const child of [consoleChild, edge, origin]) void child.ended.then(() => lost(child.name));
  console.log(demoText(facts, folder.path, { kernel: values.kernel, acme: values.acme }));
}

try {
  if (values.help) say(HELP);
  else await main();
} catch (error) {
  report(error);
}
