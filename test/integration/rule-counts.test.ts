// Rate limits and counts of rules, the WAF's among them, at a real edge: counters outlive edits, and whatever is killed, nothing counts twice.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import { freePort } from '../../bench/lib/servers.ts';
import { startTestConsole, type TestConsole } from '../helpers/console.ts';
import { type EdgeNode, startEdgeNode } from '../helpers/edge-node.ts';
import { edgeGet } from '../helpers/edge-request.ts';
import { eventually } from '../helpers/eventually.ts';
import { Api, type Body } from '../helpers/resources.ts';

const DOMAIN = 'counted.example';
const LOST_MOST = 20;
const SLOW = { timeoutMs: 180_000, everyMs: 500 };

let running: TestConsole;
let api: Api;
let node: EdgeNode;
let siteId: string;
let port: number;
const origin = createServer((_, response) => response.end('the site'));

test.before('a console, a site and its edge node', async () => {
  const nodePort = await freePort();
  running = await startTestConsole({
    env: { NODE_API_PORT: String(nodePort), SVC_NODE_API_URL: `https://localhost:${nodePort}` },
  });
  api = new Api(running);
  await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
  await api.ok('PUT', '/settings/origin-allow-list', { cidrs: ['127.0.0.0/8'] });
  const clusterId = await api.cluster('counted');
  const origins = [{ address: '127.0.0.1', port: (origin.address() as AddressInfo).port }];
  siteId = (await api.ok('POST', '/sites', { clusterId, domains: [DOMAIN], origins })).site.id;
  port = await freePort();
  node = await startEdgeNode({ client: running.client, clusterId, listen: `127.0.0.1:${port}`, kernelBans: 'off' });
});
test.after.always('stop', async (t) => {
  if (!t.passed) for (const line of node?.log().split('\n').slice(-40) ?? []) t.log(line);
  await node?.stop();
  await running?.stop();
  origin.closeAllConnections();
  await new Promise((resolve) => origin.close(resolve));
});

const get = (path: string) => edgeGet({ host: '127.0.0.1', port }, DOMAIN, {}, path);
const rule = (phase: string, path: string, action: Body, id?: string) => ({
  ...(id === undefined ? {} : { id }),
  name: path,
  phase,
  expression: `http.request.uri.path eq "${path}"`,
  enabled: true,
  action,
});

let versions = 0;

/** Saves rules with one more that shows when the edge has them; answers their ids. */
async function save(rules: readonly Body[]): Promise<string[]> {
  const path = `/version-${versions++}`;
  const all = [...rules, rule('waf-custom', path, { kind: 'block', statusCode: 451 })];
  const saved = await api.ok('PUT', `/sites/${siteId}/rules`, { rules: all });
  await eventually(async () => (await get(path)).status === 451, { ...SLOW, what: 'the rules at the edge' });
  return saved.rules.map(({ id }: Body) => id);
}

async function statuses(count: number, path: string): Promise<number[]> {
  const all: number[] = [];
  for (let index = 0; index < count; index++) all.push((await get(path)).status);
  return all;
}

async function end(name: 'agent' | 'caddy', signal: NodeJS.Signals): Promise<void> {
  const pid = (await eventually(() => node.pids(), SLOW))[name];
  process.kill(pid, signal);
  await eventually(() => (node.pids()?.[name] ?? pid) !== pid, { ...SLOW, what: `the next ${name}` });
}

const logged = async (): Promise<Body[]> => (await api.ok('GET', `/sites/${siteId}/rules/logged?range=1h`)).items;
const timesLogged = async (id: string): Promise<number> =>
  (await logged()).find(({ ruleId }) => ruleId === id)?.requests ?? 0;

test.serial('a limit holds through edits, and what rules did is counted once, whatever is killed', async (t) => {
  const limit = (requests: number, windowSeconds: number) => ({
    kind: 'rate_limit',
    limit: requests,
    windowSeconds,
    key: 'ip.src',
    statusCode: 429,
  });
  const before = rule('waf-custom', '/before', { kind: 'log' });
  const after = rule('waf-custom', '/after', { kind: 'log' });
  const ids = await save([before, after, rule('ratelimit', '/limited', limit(5, 3600))]);
  const [beforeId, afterId, limitId] = ids as [string, string, string];
  const rules = (action: Body) => [
    { ...before, id: beforeId },
    { ...after, id: afterId },
    rule('ratelimit', '/limited', action, limitId),
  ];

  t.deepEqual(await statuses(6, '/limited'), [200, 200, 200, 200, 200, 429]);
  const refused = await get('/limited');
  t.is(refused.status, 429);
  t.is(refused.headers['retry-after'], '3600');
  t.is(refused.headers['x-svc-error'], 'policy-denied');
  await save(rules(limit(6, 3600)));
  t.deepEqual(await statuses(2, '/limited'), [200, 429]);
  await save(rules(limit(6, 1800)));
  t.deepEqual(await statuses(7, '/limited'), [200, 200, 200, 200, 200, 200, 429]);

  await api.ok('PATCH', `/sites/${siteId}/waf`, { mode: 'block' });
  const attack = '/?q=1%27%20union%20select%20password%20from%20users--%20';
  await eventually(async () => (await get(attack)).status === 403, { ...SLOW, what: 'the WAF' });
  // Found in what is remembered of the first.
  t.deepEqual(await statuses(4, attack), [403, 403, 403, 403]);
  await api.ok('PATCH', `/sites/${siteId}/waf`, { mode: 'off' });

  await statuses(30, '/before');
  // An agent that is told to end takes what was counted with it.
  await end('agent', 'SIGTERM');
  await eventually(async () => (await timesLogged(beforeId)) === 30, { ...SLOW, what: 'what was logged' });
  t.like(await logged(), [{ ruleId: beforeId, name: '/before', platform: false }]);
  const top: Body = await api.ok('GET', `/sites/${siteId}/waf/rules?limit=50`);
  t.deepEqual(
    top.items.find(({ ruleId }: Body) => ruleId === 942_100),
    { ruleId: 942_100, requests: 5 },
  );

  await statuses(LOST_MOST, '/before');
  await end('caddy', 'SIGKILL');
  await eventually(async () => (await get('/')).status === 200, { ...SLOW, what: 'the edge' });
  await statuses(10, '/after');
  await end('agent', 'SIGKILL');
  await end('agent', 'SIGTERM');
  // Batches come in their order: with this one all that was left of before is there.
  await eventually(async () => (await timesLogged(afterId)) === 10, { ...SLOW, what: 'what was logged since' });
  const left = await timesLogged(beforeId);
  t.true(left >= 30 && left <= 30 + LOST_MOST, `${left}`);
  await statuses(1, '/after');
  await end('agent', 'SIGTERM');
  await eventually(async () => (await timesLogged(afterId)) === 11, { ...SLOW, what: 'one more' });
  t.is(await timesLogged(beforeId), left);

  const hits: Body = await api.ok('GET', `/sites/${siteId}/rules/hits`);
  t.is(hits.unsupportedNodes, 0);
  const ofLimit = hits.items.filter(({ ruleId }: Body) => ruleId === limitId);
  t.deepEqual(ofLimit, [{ ruleId: limitId, event: 'limited', requests: 4 }]);
  t.is(hits.items.filter(({ event }: Body) => event === 'blocked').length, versions);
});
