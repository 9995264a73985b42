// From one request to HTTPS: an authority of others (Pebble) asks a real node, and what it issues is shown to visitors,
// renewed while they come, and asked for again by the next process when the worker of orders is killed.
import https from 'node:https';
import type { TLSSocket } from 'node:tls';
import test from 'ava';
import { eventually } from '../helpers/eventually.ts';
import { type Installation, startInstallation } from '../helpers/installation.ts';
import { type Pebble, startTestPebble } from '../helpers/pebble.ts';

const HOSTS = ['shop.example.com', 'www.shop.example.com'];
const RSA_HOST = 'old.example.com';
const EXTERNAL = { 'of-a-customer': Buffer.from('a key of thirty-two bytes, agreed').toString('base64url') };
const SEEN = { timeoutMs: 120_000, everyMs: 500 };

let installation: Installation;
let pebble: Pebble;
let certificateId: string;

interface Progress {
  state: string;
  error: unknown;
  steps: { step: string; state: string }[];
}

test.before('start everything', async () => {
  installation = await startInstallation();
  const { client, edge } = installation;
  pebble = await startTestPebble({ httpPort: edge.port, external: EXTERNAL });
  const [[eabKid, eabHmacKey] = []] = Object.entries(EXTERNAL);
  const { url, caPem } = pebble;
  await client.api('PUT', '/settings/acme-directory', { url, caPem, eabKid, eabHmacKey });
});

test.afterEach.always('show errors', (t) => {
  if (!t.passed) for (const line of installation.errors()) t.log(line);
});

test.after.always('stop everything', async () => {
  await pebble?.stop();
  await installation?.stop();
});

/** One GET over a connection of its own; fails unless Pebble vouches for the host. */
function visit(host: string): Promise<{ status: number; fingerprint: string; keyType: string }> {
  return new Promise((resolve, reject) => {
    const request = https.request(
      {
        host: '127.0.0.1',
        port: installation.edge.httpsPort,
        servername: host,
        headers: { host },
        ca: pebble.rootPem,
        agent: false,
        timeout: 10_000,
      },
      (response) => {
        const shown = (response.socket as TLSSocket).getPeerX509Certificate()!;
        const fingerprint = shown.fingerprint256.replaceAll(':', '').toLowerCase();
        const keyType = shown.publicKey.asymmetricKeyType!;
        response.resume().on('end', () => resolve({ status: response.statusCode ?? 0, fingerprint, keyType }));
        response.on('error', reject);
      },
    );
    request.on('timeout', () => request.destroy(new Error('the edge does not answer')));
    request.on('error', reject);
    request.end();
  });
}

async function newSite(domains: string[]): Promise<string> {
  const { client, origin } = installation;
  const { site } = await client.api<{ site: { id: string } }>('POST', '/sites', { domains, origins: [origin] });
  return site.id;
}

/** Names of nobody's name servers: where they lead is not looked at. */
async function request(names: string[], bindSiteId: string, more: object = {}): Promise<string> {
  const asked = { name: names[0], names, email: 'ops@example.org', ca: 'custom', skipDnsCheck: true, bindSiteId };
  const { id } = await installation.client.api<{ id: string }>('POST', '/certificates/request', { ...asked, ...more });
  return id;
}

const progress = (id: string) => installation.client.api<Progress>('GET', `/certificates/${id}/progress`);

function orderOver(id: string): Promise<Progress> {
  return eventually(
    async () => {
      const now = await progress(id);
      return ['done', 'failed'].includes(now.state) && now;
    },
    { ...SEEN, what: 'the end of the order' },
  );
}

const shownBy = async (id: string) =>
  (await installation.client.api<{ fingerprint: string }>('GET', `/certificates/${id}`)).fingerprint;

test.serial('one request, and visitors get the page over HTTPS', async (t) => {
  await t.throwsAsync(visit(HOSTS[0]!));
  certificateId = await request(HOSTS, await newSite(HOSTS));
  const over = await orderOver(certificateId);
  t.is(over.state, 'done', JSON.stringify(over));
  const fingerprint = await shownBy(certificateId);
  for (const host of HOSTS) {
    t.deepEqual(await eventually(() => visit(host), SEEN), { status: 200, fingerprint, keyType: 'ec' });
  }
});

test.serial('it is renewed while visitors come and the worker of orders is killed, and nobody notices', async (t) => {
  const { client, consoles } = installation;
  const former = await shownBy(certificateId);
  const failures: unknown[] = [];
  const seen = new Set<string>();
  let coming = true;
  const visitors = HOSTS.map(async (host) => {
    while (coming) {
      await visit(host).then(
        ({ status, fingerprint }) => {
          seen.add(fingerprint);
          if (status !== 200) failures.push(status);
        },
        (error: unknown) => failures.push(error),
      );
    }
  });
  try {
    // The order stands in the middle: the authority says nothing.
    process.kill(pebble.server.pid, 'SIGSTOP');
    await client.api('POST', `/certificates/${certificateId}/renew`);
    await eventually(async () => (await progress(certificateId)).state === 'running', SEEN);
    process.kill(-consoles.worker.child.pid, 'SIGKILL');
    process.kill(pebble.server.pid, 'SIGCONT');
    await eventually(async () => (await shownBy(certificateId)) !== former, SEEN);
    const next = await shownBy(certificateId);
    await eventually(() => seen.has(next), SEEN);
    t.deepEqual([...seen].toSorted(), [former, next].toSorted());
  } finally {
    coming = false;
    await Promise.all(visitors);
  }
  t.deepEqual(failures, []);
  t.is((await orderOver(certificateId)).state, 'done');
});

test.serial('an RSA key is had for the asking', async (t) => {
  const id = await request([RSA_HOST], await newSite([RSA_HOST]), { keyType: 'rsa2048' });
  t.is((await orderOver(id)).state, 'done');
  const { status, keyType } = await eventually(() => visit(RSA_HOST), SEEN);
  t.deepEqual({ status, keyType }, { status: 200, keyType: 'rsa' });
});

test.serial('a name that nobody serves any more fails by its name, and the next one is not kept waiting', async (t) => {
  const names = ['gone.example.com', 'here.example.com'];
  await pebble.dns('add-a', { host: `${names[0]}.`, addresses: ['127.0.0.9'] });
  const id = await request(names, await newSite(names));
  const failed = await orderOver(id);
  t.like(failed, { state: 'failed', error: { code: 'acme_connection', params: { names: [names[0]] } } });
  await pebble.dns('clear-a', { host: `${names[0]}.` });
  await installation.client.api('POST', `/certificates/${id}/renew`);
  await eventually(() => visit(names[1]!), SEEN);
  t.is((await orderOver(id)).state, 'done');
});
