// The drill of docs/canary.md: a valid change that makes everything fail, to two real edges and a hundred simulated nodes.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import pg from 'pg';
import type { Fleet } from '../../bench/fleet/fleet.ts';
import { freePort } from '../../bench/lib/servers.ts';
import { type EdgeNode, startEdgeNode } from '../helpers/edge-node.ts';
import { edgeGet } from '../helpers/edge-request.ts';
import { eventually } from '../helpers/eventually.ts';
import { startTestFleet } from '../helpers/fleet.ts';
import { CLIENT_IP_HEADER, type Installation, startInstallation } from '../helpers/installation.ts';

const DOMAIN = 'shop.example';
const SIMULATED = 100;
/** Between two rounds of requests of all visitors. */
const PAUSE_MS = 20;
/** So that asking does not use up the requests that the API allows. */
const SELDOM = { everyMs: 500, timeoutMs: 120_000 };

interface Rollout {
  state: string;
  outcome: string | null;
  finding: { figure: string | null; siteId: string | null; now: number | null } | null;
  canaryNodes: { id: string; participating: boolean }[];
  window: { canaryRequests: number; baselineRequests: number } | null;
}

let installation: Installation;
let tries: EdgeNode;
let fleet: Fleet;
let good: Server;
let bad: Server;
let siteId: string;
let sql: pg.Pool;

/** An edge as its visitors see it: how many of their requests failed, and when the last one did. */
class Visitors {
  readonly at: { host: string; port: number };
  served = 0;
  failed = 0;
  #stopped = false;
  #running: Promise<void>;

  constructor(at: { host: string; port: number }) {
    this.at = at;
    this.#running = this.#ask();
  }

  async #ask(): Promise<void> {
    for (let round = 0; !this.#stopped; round++) {
      const address = `198.51.100.${(round % 250) + 1}`;
      const { status } = await edgeGet(this.at, DOMAIN, { [CLIENT_IP_HEADER]: address });
      if (status === 200) this.served++;
      else this.failed++;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  /** Forgets what was, and resolves once so many in a row were served. */
  async areServed(count = 20): Promise<void> {
    this.served = 0;
    this.failed = 0;
    await eventually(
      () => {
        if (this.failed > 0) this.served = 0;
        this.failed = 0;
        return this.served >= count;
      },
      { timeoutMs: 120_000, what: 'visitors to be served' },
    );
  }

  stop(): Promise<void> {
    this.#stopped = true;
    return this.#running;
  }
}

let stable: Visitors;
let canary: Visitors;

const api = <T = unknown>(method: string, path: string, body?: object): Promise<T> =>
  installation.client.api<T>(method, path, body);
const rollout = () => api<Rollout>('GET', `/clusters/${installation.clusterId}/rollout`);
const setPolicy = (policy: object) => api('PUT', `/clusters/${installation.clusterId}/rollout-policy`, policy);
const goTo = (origin: Server) =>
  api('PATCH', `/sites/${siteId}`, { origins: [{ address: '127.0.0.1', port: portOf(origin) }] });
const events = async (kind: string) => {
  const path = `/clusters/${installation.clusterId}/rollout-events`;
  const { items } = await api<{ items: { kind: string; finding: Rollout['finding'] }[] }>('GET', path);
  return items.filter((event) => event.kind === kind);
};

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

async function origin(status: number): Promise<Server> {
  const server = createServer((_request, response) => {
    response.statusCode = status;
    response.end('origin');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

test.before('a console, two edges of which one tries changes, and simulated nodes', async () => {
  installation = await startInstallation();
  const { client, clusterId, consoles, databaseUrl, edge } = installation;
  sql = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  const port = await freePort();
  tries = await startEdgeNode({ client, clusterId, listen: `127.0.0.1:${port}`, kernelBans: 'off' });
  const group = await api<{ id: string }>('POST', '/node-groups', { clusterId, name: 'tries', isCanary: true });
  await api('PATCH', `/nodes/${tries.nodeId}`, { nodeGroupId: group.id });
  fleet = await startTestFleet({ client, nodeApiUrl: consoles.channel.nodeApiUrl }, clusterId, SIMULATED);
  good = await origin(200);
  bad = await origin(500);
  const origins = [{ address: '127.0.0.1', port: portOf(good) }];
  siteId = (await api<{ site: { id: string } }>('POST', '/sites', { domains: [DOMAIN], origins })).site.id;
  for (const at of [edge, { host: '127.0.0.1', port }]) {
    await eventually(async () => (await edgeGet(at, DOMAIN)).status === 200, { what: 'the site' });
  }
  stable = new Visitors(edge);
  canary = new Visitors({ host: '127.0.0.1', port });
});

test.after.always(async () => {
  await Promise.all([stable?.stop(), canary?.stop()]);
  await fleet?.stop();
  await tries?.stop();
  await sql?.end();
  for (const server of [good, bad]) {
    server?.closeAllConnections();
    server?.close();
  }
  await installation?.stop();
});

test.serial('with a canary only its nodes are hit, and it is ended by itself', async (t) => {
  await setPolicy({ enabled: true, windowSeconds: 60 });
  await stable.areServed();
  const changed = Date.now();
  const { revision } = (await goTo(bad)) as { revision: string };
  await eventually(() => canary.failed > 0, { what: 'the change at the node that tries it' });
  for (const node of fleet.nodes) t.true(node.config.revision < BigInt(revision), 'the others do not get it');
  const ended = await eventually(
    async () => {
      const now = await rollout();
      return now.state === 'rolled_back' && now;
    },
    { ...SELDOM, what: 'the canary to end' },
  );
  await canary.areServed();
  t.log(`ended and served again ${((Date.now() - changed) / 1000).toFixed(1)} s after the change`);
  t.is(ended.outcome, 'error_ratio');
  t.is(ended.finding!.figure, 'origin_5xx');
  t.deepEqual(
    ended.canaryNodes.map(({ id, participating }) => [id, participating]),
    [[tries.nodeId, true]],
  );
  t.is(stable.failed, 0, 'visitors of the other nodes noticed nothing');
  // Settings are as they were saved: put right, they are what everybody runs.
  await goTo(good);
  t.not((await rollout()).state, 'canary');
});

test.serial('without one, what everybody got is undone by itself, its site alone', async (t) => {
  await setPolicy({ enabled: false, undoDirect: true });
  // What is watched says how it was before.
  const { revision } = await api<{ revision: string }>('PATCH', `/sites/${siteId}`, {
    contentSettings: { requestBodyLimit: 1_048_576 },
  });
  await reported(revision, 500);
  const changed = Date.now();
  await goTo(bad);
  await eventually(() => canary.failed > 0 && stable.failed > 0, { what: 'the change at both edges' });
  const [undone] = await eventually(
    async () => {
      const found = await events('undone');
      return found.length > 0 && found;
    },
    { ...SELDOM, what: 'the change to be undone' },
  );
  await Promise.all([stable.areServed(), canary.areServed()]);
  t.log(`undone and served again ${((Date.now() - changed) / 1000).toFixed(1)} s after the change`);
  t.like(undone!.finding, { figure: 'origin_5xx', siteId });
  await goTo(good);
});

test.serial('an origin that dies at the moment of an unrelated change undoes nothing', async (t) => {
  const before = (await events('undone')).length;
  const { revision } = await api<{ revision: string }>('PATCH', `/sites/${siteId}`, {
    contentSettings: { requestBodyLimit: 2_097_152 },
  });
  good.closeAllConnections();
  await new Promise((resolve) => good.close(resolve));
  // Long enough for a verdict: what is known of the change is far more than it takes.
  await eventually(
    async () => {
      const { rows } = await sql.query(
        `select count(*) filter (where edge_5xx > 50) as slots from vital where site_id = $1 and revision >= $2`,
        [siteId, revision],
      );
      return Number(rows[0].slots) >= 4;
    },
    { timeoutMs: 180_000, what: 'errors of a dead origin' },
  );
  t.is((await events('undone')).length, before);
  t.is((await events('undo_stopped')).length, 0);
});

/** Waits until edges have told of so many requests to the site that were served since a revision. */
async function reported(revision: string, requests: number): Promise<void> {
  await eventually(
    async () => {
      const { rows } = await sql.query(
        `select coalesce(sum(requests), 0) as requests from vital where site_id = $1 and revision >= $2 and origin_5xx = 0`,
        [siteId, revision],
      );
      return Number(rows[0].requests) >= requests;
    },
    { timeoutMs: 120_000, what: 'figures of the site' },
  );
}
