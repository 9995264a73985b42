// One of 5,000 redirects of a site edited, from the API request to the new answer at a real edge. In the same run the same
// edit of a map of nginx, which is written and read again as a whole.
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { clockMs } from './fleet/fleet.ts';
import { firstAnswer, type ProbeTarget } from './lib/edge-probe.ts';
import { startPushSizes } from './lib/push-sizes.ts';
import { freePort, nginxCommand, type Server, startServer } from './lib/servers.ts';
import { startStack } from './lib/stack.ts';
import { medianInterval, percentile, round2 } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'an edited redirect of 5,000 to the new answer at a real edge, beside a reload of nginx';
export const needs = ['nginx'];

const REDIRECTS = 5000;
const P99_MS = 250;
const WIRE_BYTES = 32 * 1024;
/** The edited ones lie apart from each other. */
const STEP = 37;

interface Redirect {
  source: string;
  target: string;
}

/** An edit that was made and seen. */
type Edit = (redirects: readonly Redirect[], edited: Redirect) => Promise<void>;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const changes = quick ? 20 : 200;
  const stack = await startStack('rules-publish');
  const sizes = await startPushSizes(stack);
  const folder = path.join(stack.folder, 'nginx');
  const nginx = await startNginx(folder, redirectsAfter(0));
  try {
    const { facts, client } = stack;
    const url = `/api/v1/sites/${facts.site.id}/bulk-redirects`;
    const revisions: string[] = [];
    const api: number[] = [];
    const save: Edit = async (redirects, edited) => {
      const before = clockMs();
      const saved = client.request('PUT', url, { redirects }, { 'x-api-key': facts.accessKey });
      const seen = redirectsTo({ edge: facts.edge.http, host: facts.site.host }, edited);
      const answer = await saved;
      api.push(clockMs() - before);
      if (answer.status !== 200) throw new Error(`PUT answered ${answer.status} ${JSON.stringify(answer.body)}`);
      revisions.push((answer.body as { revision: string }).revision);
      await seen;
    };
    const reload: Edit = async (redirects, edited) => {
      writeMap(folder, redirects);
      process.kill(nginx.pid, 'SIGHUP');
      await redirectsTo({ edge: `127.0.0.1:${nginx.port}`, host: facts.site.host }, edited);
    };
    await save(redirectsAfter(0), editedBy(0));
    const times: Record<'edge' | 'nginx', number[]> = { edge: [], nginx: [] };
    for (let change = 1; change <= changes; change++) {
      const redirects = redirectsAfter(change);
      for (const [name, edit] of [
        ['edge', save],
        ['nginx', reload],
      ] as const) {
        const before = clockMs();
        await edit(redirects, editedBy(change));
        times[name].push(clockMs() - before);
      }
      if (change % 50 === 0) log(`${change} edits`);
    }
    // The first revision has all of them.
    const wire = revisions.slice(1).map((revision) => sizes.bytes.get(revision) ?? Number.NaN);
    const interval = medianInterval(times.edge);
    const p99 = percentile(times.edge, 99);
    const largest = Math.max(...wire);
    return {
      figures: {
        edits: changes,
        p50Ms: round2(interval.median),
        p50Interval: [round2(interval.low), round2(interval.high)],
        p99Ms: round2(p99),
        api: { p50Ms: round2(percentile(api.slice(1), 50)), p99Ms: round2(percentile(api.slice(1), 99)) },
        wire: { p50Bytes: percentile(wire, 50), maxBytes: largest },
        nginx: { p50Ms: round2(percentile(times.nginx, 50)), p99Ms: round2(percentile(times.nginx, 99)) },
      },
      aims: [
        { aim: `p99 ≤ ${P99_MS} ms`, reached: p99 <= P99_MS },
        { aim: `each edit ≤ ${WIRE_BYTES / 1024} KiB on the wire of a node`, reached: largest <= WIRE_BYTES },
      ],
      programs: { nginx: ['nginx', '-v'] },
    };
  } finally {
    sizes.stop();
    await nginx.stop();
    await stack.stop();
  }
}

/** What the edit of a number leaves. */
function editedBy(change: number): Redirect {
  const index = (change * STEP) % REDIRECTS;
  return { source: sourceOf(index), target: `/shop/departments/${index}/edited-${change}` };
}

/** All redirects after so many edits: those edited before stay so. */
function redirectsAfter(changes: number): Redirect[] {
  const redirects = Array.from({ length: REDIRECTS }, (_, index) => ({
    source: sourceOf(index),
    target: `/shop/departments/${index % 40}/products/${index}`,
  }));
  for (let change = 0; change <= changes; change++) redirects[(change * STEP) % REDIRECTS] = editedBy(change);
  return redirects;
}

function sourceOf(index: number): string {
  return `/catalogue/category-${index % 40}/product-${index}.html`;
}

/** When the edge first sends who asks for the source to the target. */
function redirectsTo(target: ProbeTarget, { source, target: location }: Redirect): Promise<number> {
  return firstAnswer(
    { ...target, path: source },
    (_status, _body, headers) => headers.location?.endsWith(location) ?? false,
  );
}

async function startNginx(folder: string, redirects: readonly Redirect[]): Promise<Server> {
  if (existsSync(folder)) rmSync(folder, { recursive: true });
  mkdirSync(folder, { recursive: true });
  writeMap(folder, redirects);
  const port = await freePort();
  const http = `  map_hash_max_size 65536; map_hash_bucket_size 256;
  map $uri $to { include ${folder}/redirects.map; }
  server { listen 127.0.0.1:${port}; location / { if ($to) { return 301 $to; } return 404; } }`;
  const command = nginxCommand(folder, http, { reloads: true });
  const edge = { edge: `127.0.0.1:${port}`, host: 'localhost' };
  return startServer('nginx', '0-1', command, port, async () => (await redirectsTo(edge, editedBy(0))) > 0);
}

function writeMap(folder: string, redirects: readonly Redirect[]): void {
  writeFileSync(
    path.join(folder, 'redirects.map'),
    redirects.map(({ source, target }) => `${source} ${target};\n`).join(''),
  );
}
