// node bench/fleet/main.ts --nodes N --server https://host:8443 --api http://host:3000 --key ewk_… [--key …]
//   [--cluster ID] [--full]
// Runs a simulated fleet against a console until it is stopped, with one line of figures every 5 s. A key allows about
// 600 requests in a row, so 1,000 nodes need two.
import { parseArgs } from 'node:util';
import { ALL_FEATURES, startFleet } from './fleet.ts';

const { values } = parseArgs({
  options: {
    nodes: { type: 'string', default: '100' },
    server: { type: 'string' },
    api: { type: 'string' },
    key: { type: 'string', multiple: true },
    cluster: { type: 'string' },
    full: { type: 'boolean', default: false },
  },
});
const { server, api, key: keys } = values;
const count = Number(values.nodes);
if (!server || !api || !keys || !Number.isInteger(count) || count < 1 || count > 10_000) {
  process.stderr.write('usage: --nodes 1-10000 --server URL --api URL --key KEY [--key KEY] [--cluster ID] [--full]\n');
  process.exit(2);
}

async function call<T>(method: string, path: string, key: string, body?: unknown): Promise<T> {
  const response = await fetch(`${api}/api/v1${path}`, {
    method,
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(30_000),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

const clusterId =
  values.cluster ?? (await call<{ items: { id: string }[] }>('GET', '/clusters?pageSize=1', keys[0]!)).items[0]?.id;
if (!clusterId) throw new Error('the console has no cluster');

const begun = performance.now();
const fleet = await startFleet({
  nodes: count,
  serverUrl: server,
  full: values.full,
  features: ALL_FEATURES,
  newToken: (index) =>
    call('POST', '/enrollment-tokens', keys[Math.floor(index / 500) % keys.length]!, {
      clusterId,
      nodeName: `sim-${index}`,
    }),
});
process.stdout.write(`${count} nodes enrolled and connected in ${Math.round(performance.now() - begun)} ms\n`);

const report = setInterval(() => {
  const connected = fleet.nodes.filter((node) => node.connected).length;
  const sum = (name: keyof (typeof fleet.nodes)[0]['counts']) =>
    fleet.nodes.reduce((n, node) => n + node.counts[name], 0);
  const rss = Math.round(process.memoryUsage.rss() / 2 ** 20);
  process.stdout.write(
    `connected ${connected} batches ${sum('batches')} deltas ${sum('deltas')} pulls ${sum('pulls')} rss ${rss} MiB busy ${fleet.busy().toFixed(2)}\n`,
  );
}, 5_000);

const stop = async (): Promise<void> => {
  clearInterval(report);
  await fleet.stop();
  process.exit(0);
};
process.once('SIGINT', stop);
process.once('SIGTERM', stop);
