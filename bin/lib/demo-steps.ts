// What a new user does by hand, done through the same API: set-up, settings, a node, a site. Nothing in the console knows
// that it is a demo.
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { CallError, ConsoleClient } from './console-client.ts';
import type { DemoMemory } from './demo-state.ts';
import { Refusal } from './progress.ts';

export const SITE_HOST = 'demo.localhost';
export const CLIENT_IP_HEADER = 'x-demo-client-ip';
const LOOPBACK = ['127.0.0.0/8', '::1/128'];

/** The setup token a console that nobody has set up writes to its log on every start. */
export function setupTokenFrom(logFile: string): string | undefined {
  const lines = readFileSync(logFile, 'utf8').split('\n').reverse();
  for (const line of lines) {
    if (!line.includes('"setupToken"')) continue;
    return (JSON.parse(line) as { setupToken?: string }).setupToken;
  }
  return undefined;
}

/** A client that is signed in as the operator and has an access key; sets the console up the first time. */
export async function becomeOperator(
  url: string,
  publicUrl: string,
  logFile: string,
  memory: DemoMemory,
): Promise<ConsoleClient> {
  const client = new ConsoleClient(url, publicUrl);
  const { operator } = memory.state;
  const { body } = await client.request<{ initialized: boolean }>('GET', '/api/v1/system/status');
  if (!body.initialized) {
    const setupToken = setupTokenFrom(logFile);
    if (!setupToken) throw new Error(`the console did not log a setup token in ${logFile}`);
    const answer = await client.request('POST', '/api/v1/system/setup', { setupToken, ...operator });
    if (answer.status !== 200) throw new CallError('set-up', answer);
  }
  try {
    await client.signIn({ email: operator.email, password: operator.password });
  } catch (error) {
    if (!(error instanceof CallError) || error.answer.status >= 500) throw error;
    throw new Refusal(
      `the console was set up by somebody else, or its password was changed: the demo cannot sign in as ${operator.email}.\n` +
        'Start it with --fresh (deletes the demo), or with --data and another folder.',
    );
  }
  if (memory.state.accessKey) client.accessKey = memory.state.accessKey;
  const known = client.accessKey
    ? await client.request('GET', '/api/v1/me', undefined, { 'x-api-key': client.accessKey })
    : undefined;
  if (known?.status !== 200) memory.save({ accessKey: await client.createKey('demo') });
  return client;
}

/** The settings that let one machine play many visitors; made once, so that later changes by hand stay. */
export async function configure(client: ConsoleClient, memory: DemoMemory): Promise<void> {
  if (memory.state.configured) return;
  const clusters = await client.api<{ items: { id: string }[] }>('GET', '/clusters');
  const clusterId = clusters.items[0]?.id;
  if (!clusterId) throw new Error('the set-up created no cluster');
  await client.api('PUT', '/settings/origin-allow-list', { cidrs: LOOPBACK });
  const settings = { mode: 'header', trustedCidrs: LOOPBACK, header: CLIENT_IP_HEADER };
  await client.api('PUT', `/clusters/${clusterId}/client-ip`, { settings });
  memory.save({ clusterId, configured: true });
}

export interface EnrollmentToken {
  token: string;
  serverUrl: string;
  caSha256: string;
}

/** A token for the node of this machine. A node that enrolled under an address we no longer have is removed first. */
export async function newEnrollmentToken(client: ConsoleClient, memory: DemoMemory): Promise<EnrollmentToken> {
  const { node, clusterId } = memory.state;
  if (node) {
    for (const [method, path] of [
      ['POST', `/nodes/${node.id}/disable`],
      ['DELETE', `/nodes/${node.id}`],
    ] as const) {
      const answer = await client.request(method, `/api/v1${path}`, undefined, { 'x-api-key': client.accessKey });
      if (answer.status >= 500) throw new CallError(`${method} ${path}`, answer);
    }
  }
  return client.api<EnrollmentToken>('POST', '/enrollment-tokens', { clusterId, nodeName: 'demo' });
}

interface SiteAnswer {
  id: string;
  domains: string[];
  origins: { address: string; port: number }[];
  delivery: { state: string };
}

/** The demo site, created the first time; follows its origin to another port. */
export async function ensureSite(client: ConsoleClient, memory: DemoMemory, originPort: number): Promise<void> {
  const origins = [{ address: '127.0.0.1', port: originPort }];
  const found = await client.api<{ items: SiteAnswer[] }>('GET', `/sites?search=${SITE_HOST}`);
  const site = found.items.find((candidate) => candidate.domains.includes(SITE_HOST));
  if (!site) {
    const domains = [SITE_HOST];
    const clusterId = memory.state.clusterId;
    const created = await client.api<{ site: SiteAnswer }>('POST', '/sites', {
      name: 'Demo',
      clusterId,
      domains,
      origins,
    });
    memory.save({ site: { id: created.site.id, host: SITE_HOST } });
    return;
  }
  memory.save({ site: { id: site.id, host: SITE_HOST } });
  const [only, ...others] = site.origins;
  if (only?.address === '127.0.0.1' && others.length === 0 && only.port !== originPort) {
    await client.api('PATCH', `/sites/${site.id}`, { origins });
  }
}

/** Delivery state of the site, asked with the session: the access key's requests are for whoever uses the demo. */
export async function deliveryState(client: ConsoleClient, siteId: string): Promise<string> {
  return (await client.rpc<SiteAnswer>('sites.get', { id: siteId })).delivery.state;
}

/** Status of the site's start page through the edge, or 0 while nothing answers. */
export function siteStatus(host: string, port: number): Promise<number> {
  return new Promise((done) => {
    const request = httpRequest(
      { host: '127.0.0.1', port, path: '/', headers: { host }, timeout: 5000, agent: false },
      (response) => {
        response.resume();
        done(response.statusCode ?? 0);
      },
    );
    request.on('timeout', () => request.destroy());
    request.on('error', () => done(0));
    request.end();
  });
}
