// The demo site's certificate from a certificate authority on this machine, asked for as the button of the Web UI does.
import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { isApiError } from '../../client/src/index.ts';
import type { ConsoleClient } from './console-client.ts';
import { choose } from './demo-https.ts';
import type { DemoMemory } from './demo-state.ts';
import { SITE_HOST } from './demo-steps.ts';
import type { Pebble } from './pebble.ts';
import { Refusal } from './progress.ts';

const ISSUE_TIMEOUT_MS = 120_000;
const LOOK_MS = 500;

/**
 * Names Pebble as the console's own authority and has the site's certificate issued by it; its root, which is another at
 * each start, goes into `caFile`. Answers whether the site has it: one that was chosen by hand stays. Throws a Refusal when
 * the authority does not issue.
 */
export async function issueByPebble(
  client: ConsoleClient,
  memory: DemoMemory,
  pebble: Pebble,
  caFile: string,
): Promise<boolean> {
  const { site, operator } = memory.state;
  if (!site) throw new Error('the demo has no site yet');
  writeFileSync(caFile, pebble.rootPem, { mode: 0o644 });
  const api = client.typed;
  await api.settings.acmeDirectory.set({ url: pebble.url, caPem: pebble.caPem });
  const former = memory.state.acmeCertificate;
  const id = former && (await renewed(client, former)) ? former : await request(client, site.id, operator.email);
  memory.save({ acmeCertificate: id });
  await issued(client, id);
  return choose(client, memory, id);
}

/** The request that the button sends. Names below localhost are in no public DNS; Pebble's own name server knows them. */
async function request(client: ConsoleClient, siteId: string, email: string): Promise<string> {
  const api = client.typed;
  const { name, names } = (await api.sites.https.check({ id: siteId, ca: 'custom' })).request;
  const asked = { name, names, email, ca: 'custom', bindSiteId: siteId, skipDnsCheck: true } as const;
  return (await api.certificates.request(asked)).id;
}

/** Asks for the next one; false when somebody deleted the certificate. */
async function renewed(client: ConsoleClient, id: string): Promise<boolean> {
  try {
    await client.typed.certificates.renew({ id });
    return true;
  } catch (error) {
    if (isApiError(error, 'CERTIFICATE_NOT_FOUND')) return false;
    // An order that an earlier start left goes on by itself.
    if (isApiError(error, 'CERTIFICATE_BUSY')) return true;
    throw error;
  }
}

async function issued(client: ConsoleClient, id: string): Promise<void> {
  const deadline = Date.now() + ISSUE_TIMEOUT_MS;
  for (;;) {
    const { state, error } = await client.typed.certificates.progress({ id });
    if (state === 'done') return;
    if (state === 'failed' || Date.now() > deadline)
      throw new Refusal(`the CA did not issue the certificate of ${SITE_HOST}: ${error?.code ?? state}`);
    await delay(LOOK_MS);
  }
}
