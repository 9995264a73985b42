// What a new user does by hand, done through the same API: set-up, settings, a node, a site. Nothing in the console knows
// that it is a demo.
import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isApiError, type NewEnrollmentToken, type Site, type SiteHttps } from '../../client/src/index.ts';
import { CallError, ConsoleClient } from './console-client.ts';
import type { DemoMemory } from './demo-state.ts';
import { Refusal } from './progress.ts';

export const SITE_HOST = 'demo.localhost';
export const CLIENT_IP_HEADER = 'x-demo-client-ip';
/** What plays proxies, visitors and origins on one machine. */
export const LOOPBACK = ['127.0.0.0/8', '::1/128'];

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
  const { initialized } = await client.typed.system.status();
  if (!initialized) {
    const setupToken = setupTokenFrom(logFile);
    if (!setupToken) throw new Error(`the console did not log a setup token in ${logFile}`);
    await client.typed.system.setup({ setupToken, ...operator });
  }
  try {
    await client.signIn({ email: operator.email, password: operator.password });
  } catch (error) {
    if (!(error instanceof CallError) || error.answer.status >= 500) throw error;
    throw new Refusal(
      `the demo cannot sign in as ${operator.email}: another setup or a new password replaced its account.\n` +
        'Start it with --fresh (deletes the demo), or with --data and another folder.',
    );
  }
  if (memory.state.accessKey) client.accessKey = memory.state.accessKey;
  if (!(await keyWorks(client))) memory.save({ accessKey: await client.createKey('demo') });
  return client;
}

async function keyWorks(client: ConsoleClient): Promise<boolean> {
  if (!client.accessKey) return false;
  try {
    await client.typed.account.me();
    return true;
  } catch (error) {
    if (isApiError(error, 'UNAUTHORIZED')) return false;
    throw error;
  }
}

/** The settings that let one machine play many visitors; made once, so that later changes by hand stay. */
export async function configure(client: ConsoleClient, memory: DemoMemory): Promise<void> {
  if (memory.state.configured) return;
  const api = client.typed;
  const clusterId = (await api.clusters.list()).items[0]?.id;
  if (!clusterId) throw new Error('the setup created no cluster');
  await api.settings.originAllowList.set({ cidrs: LOOPBACK });
  const settings = { mode: 'header', trustedCidrs: LOOPBACK, header: CLIENT_IP_HEADER } as const;
  await api.clusters.clientIp.set({ clusterId, settings });
  memory.save({ clusterId, configured: true });
}

/** A token for the node of this machine. A node that enrolled under an address we no longer have is removed first. */
export async function newEnrollmentToken(client: ConsoleClient, memory: DemoMemory): Promise<NewEnrollmentToken> {
  const { node, clusterId } = memory.state;
  if (!clusterId) throw new Error('the demo has no cluster yet');
  const api = client.typed;
  if (node) {
    try {
      await api.nodes.disable({ id: node.id });
      await api.nodes.delete({ id: node.id });
    } catch (error) {
      // Somebody removed it before.
      if (!isApiError(error, 'NODE_NOT_FOUND')) throw error;
    }
  }
  return api.enrollmentTokens.create({ clusterId, nodeName: 'demo' });
}

/** The demo site, created the first time; follows its origin to another port. */
export async function ensureSite(client: ConsoleClient, memory: DemoMemory, originPort: number): Promise<void> {
  const origins = [{ address: '127.0.0.1', port: originPort }];
  const api = client.typed;
  const { items } = await api.sites.list({ search: SITE_HOST });
  const site = items.find((candidate) => candidate.domains.includes(SITE_HOST));
  if (!site) {
    const { clusterId } = memory.state;
    const created = await api.sites.create({ name: 'Demo', clusterId, domains: [SITE_HOST], origins });
    memory.save({ site: { id: created.site.id, host: SITE_HOST } });
    return;
  }
  memory.save({ site: { id: site.id, host: SITE_HOST } });
  const [only, ...others] = site.origins;
  if (only?.address === '127.0.0.1' && others.length === 0 && only.port !== originPort) {
    await api.sites.update({ id: site.id, origins });
  }
}

/** Delivery state of the site, asked with the session: the access key's requests are for whoever uses the demo. */
export async function deliveryState(client: ConsoleClient, siteId: string): Promise<string> {
  return (await client.rpc<Site>('sites.get', { id: siteId })).delivery.state;
}

/** Whether the site has a certificate that can be served, asked with the session. */
export async function hasCertificate(client: ConsoleClient, siteId: string): Promise<boolean> {
  const { certificates } = await client.rpc<SiteHttps>('sites.https.get', { id: siteId });
  return certificates.some(({ notAfter }) => notAfter !== null);
}

/** Status of the site's start page through the edge, or 0 while nothing answers, to whom trusts `ca` where it is given. */
export function siteStatus(scheme: 'http' | 'https', host: string, port: number, ca?: string): Promise<number> {
  const request = scheme === 'http' ? httpRequest : httpsRequest;
  // Else whether a certificate is there is asked, not whose it is: it may be one that was chosen by hand.
  const tls = scheme === 'http' ? {} : { servername: host, ...(ca ? { ca } : { rejectUnauthorized: false }) };
  return new Promise((done) => {
    const call = request(
      { host: '127.0.0.1', port, path: '/', headers: { host }, timeout: 5000, agent: false, ...tls },
      (response) => {
        response.resume();
        done(response.statusCode ?? 0);
      },
    );
    call.on('timeout', () => call.destroy());
    call.on('error', () => done(0));
    call.end();
  });
}
