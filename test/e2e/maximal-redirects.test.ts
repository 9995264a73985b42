// The most redirects of the largest size on their whole way: through the API, to a real edge and to a simulated node, and
// all of it again after everything was started anew.
import test from 'ava';
import type { Fleet } from '../../bench/fleet/fleet.ts';
import type { FullStore } from '../../bench/fleet/node-store.ts';
import { edgeGet } from '../helpers/edge-request.ts';
import { eventually } from '../helpers/eventually.ts';
import { startTestFleet } from '../helpers/fleet.ts';
import { type Installation, startInstallation } from '../helpers/installation.ts';

const MOST = 5000;
const SOURCE_BYTES = 512;
const TARGET_BYTES = 1024;
const HOST = 'redirected.example';

interface Redirect {
  source: string;
  target: string;
  statusCode: number;
  preserveQuery: boolean;
}

let installation: Installation;
let fleet: Fleet | undefined;
let path: string;

test.before('start everything', async () => {
  installation = await startInstallation();
  const { client, clusterId, origin, consoles } = installation;
  const { site } = await client.api<{ site: { id: string } }>('POST', '/sites', { domains: [HOST], origins: [origin] });
  path = `/sites/${site.id}/bulk-redirects`;
  const reachable = { client, nodeApiUrl: consoles.channel.nodeApiUrl };
  fleet = await startTestFleet(reachable, clusterId, 1, { features: ['partial-config-v1', 'rules-v2'] });
});

test.afterEach.always('show errors', (t) => {
  if (!t.passed) for (const line of installation.errors()) t.log(line);
});

test.after.always('stop everything', async () => {
  await fleet?.stop();
  await installation?.stop();
});

/** Half of them of the host, half of any; in the order in which they are answered. */
function largest(word: string): Redirect[] {
  return Array.from({ length: MOST }, (_, index) => {
    const start = `${index % 2 === 0 ? '' : HOST}/${String(index).padStart(4, '0')}/`;
    return {
      source: start + 'é'.repeat((SOURCE_BYTES - start.length) >> 1) + 's'.repeat((SOURCE_BYTES - start.length) & 1),
      target: `/${word}/${index}/`.padEnd(TARGET_BYTES, 't'),
      statusCode: 308,
      preserveQuery: true,
    };
  }).sort((a, b) => Buffer.compare(Buffer.from(a.source), Buffer.from(b.source)));
}

/** Saves them. A machine that is busy with other things may need more than the time of a transaction: it says so. */
const save = (redirects: readonly Redirect[]) =>
  eventually(() => installation.client.api<{ redirects: Redirect[]; revision: string }>('PUT', path, { redirects }), {
    timeoutMs: 180_000,
    everyMs: 2000,
    what: 'the save',
  });

const saved = async () => (await installation.client.api<{ redirects: Redirect[] }>('GET', path)).redirects;

/** Where the edge sends who asks for a source; empty while it sends nobody anywhere. */
async function sentTo({ source }: Redirect): Promise<string> {
  const asked = encodeURI(source.slice(source.indexOf('/')));
  const answer = await edgeGet(installation.edge, HOST, {}, `${asked}?a=1`).catch(() => null);
  return answer?.status === 308 ? (answer.headers.location ?? '') : '';
}

async function allServed(redirects: readonly Redirect[], what: string): Promise<void> {
  for (let index = 0; index < MOST; index += 250) {
    const redirect = redirects[index]!;
    const wanted = `${redirect.target}?a=1`;
    await eventually(async () => (await sentTo(redirect)) === wanted, { timeoutMs: 120_000, everyMs: 500, what });
  }
}

/** What the simulated node holds of the redirects, once it is where the console is. */
function held(): { chunks: number; bytes: number } {
  const { entries } = fleet!.nodes[0]!.store as FullStore;
  const chunks = [...entries.values()].filter(({ kind }) => kind === 'bulk-redirects');
  return { chunks: chunks.length, bytes: chunks.reduce((sum, { body }) => sum + body.length, 0) };
}

test.serial('the most redirects of the largest size are saved, published and served', async (t) => {
  const redirects = largest('first');
  t.true(redirects.every(({ source }) => Buffer.byteLength(source) === SOURCE_BYTES));
  const { revision, ...answer } = await save(redirects);
  t.deepEqual(answer.redirects, redirects);
  t.deepEqual(await saved(), redirects);
  await fleet!.waitForRevision(revision, 120_000);
  t.is(held().chunks, 256);
  t.true(held().bytes > MOST * (SOURCE_BYTES + TARGET_BYTES));
  await allServed(redirects, 'the edge to have the redirects');
});

test.serial('they are the same after all consoles and the edge were started anew', async (t) => {
  const redirects = largest('first');
  const { consoles, node } = installation;
  await Promise.all([consoles.app, consoles.channel, consoles.worker].map(({ child }) => child.stop()));
  await node.supervisor.stop();
  node.restart();
  await allServed(redirects, 'the edge to serve from its disk');
  await installation.startConsoles();
  t.deepEqual(await saved(), redirects);

  // All of them at once, to nodes that have others.
  const others = largest('second');
  const { revision } = await save(others);
  await fleet!.waitForRevision(revision, 120_000);
  await allServed(others, 'the edge to have the new redirects');
  t.deepEqual(await saved(), others);
});
