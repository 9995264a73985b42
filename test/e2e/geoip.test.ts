// GeoIP from the packaged databases to the answers of a node: what it has, what it lacks, and what that means for rules.
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import type { Output } from '../../contract/procedure.ts';
import type { analytics } from '../../contract/resources/analytics.ts';
import type { nodes } from '../../contract/resources/nodes.ts';
import { edgeGet } from '../helpers/edge-request.ts';
import { eventually } from '../helpers/eventually.ts';
import { type GeoipDatabases, geoipDatabases } from '../helpers/geoip.ts';
import { CLIENT_IP_HEADER, type Installation, startInstallation } from '../helpers/installation.ts';

const HOST = 'geoip.example';
/** Of the registry for Europe, and of a resolver that everybody knows. */
const [IN_THE_NETHERLANDS, OF_GOOGLE, PRIVATE] = ['193.0.0.1', '8.8.8.8', '192.168.1.1'];

let installation: Installation;
let databases: GeoipDatabases;
let folder: string;
let asn: string;

test.before('start everything, with one of the two databases', async () => {
  databases = await geoipDatabases();
  folder = mkdtempSync(join(tmpdir(), 'geoip-'));
  asn = join(folder, 'asn.mmdb');
  installation = await startInstallation(['--geoip-country', databases.country, '--geoip-asn', asn]);
});

test.afterEach.always('show errors', (t) => {
  if (!t.passed) for (const line of installation.errors()) t.log(line);
});

test.after.always('stop everything', async () => {
  await installation?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const reported = async () => {
  const node = await installation.client.api<Output<typeof nodes.get>>('GET', `/nodes/${installation.node.nodeId}`);
  return node.geoip;
};

/** Status and code of what the edge answers a visitor; 0 while it does not answer. */
const answer = async (visitor: string, path = '/'): Promise<[number, string | undefined]> => {
  try {
    const { status, headers } = await edgeGet(installation.edge, HOST, { [CLIENT_IP_HEADER]: visitor }, path);
    return [status, headers['x-svc-error'] as string | undefined];
  } catch {
    return [0, undefined];
  }
};

test.serial('a node tells which databases it has, and only what reads the missing one fails', async (t) => {
  const { client, origin } = installation;
  const told = await eventually(async () => (await reported()) ?? undefined, {
    everyMs: 500,
    what: 'the databases to be told',
  });
  t.like(told, { country: { state: 'ready', problem: '' }, asn: { state: 'unavailable', builtAt: null } });
  t.regex(told!.country.builtAt!, /^20\d\d-/);
  t.regex(told!.asn.problem, /no such file/);

  const body = { domains: [HOST], origins: [origin] };
  const { site } = await client.api<{ site: { id: string } }>('POST', '/sites', body);
  const block = { phase: 'waf-custom', enabled: true, action: { kind: 'block' } };
  await client.api('PUT', `/sites/${site.id}/rules`, {
    rules: [
      { ...block, name: 'country', expression: 'ip.geoip.country eq "NL"' },
      { ...block, name: 'system', expression: 'http.request.uri.path eq "/as" and ip.geoip.asnum eq 15169' },
      { ...block, name: 'name', expression: 'http.request.uri.path eq "/name" and ip.geoip.as_name contains "Google"' },
    ],
  });
  await eventually(async () => (await answer(IN_THE_NETHERLANDS))[0] === 403, { what: 'the rules to act' });
  t.is((await answer(OF_GOOGLE))[0], 200);
  t.is((await answer(PRIVATE))[0], 200);
  for (const visitor of [OF_GOOGLE, PRIVATE])
    t.deepEqual(await answer(visitor, '/as'), [503, 'policy-unavailable'], visitor);
});

test.serial('with the other database its rules act, too', async (t) => {
  copyFileSync(databases.asn, asn);
  await installation.node.supervisor.stop();
  await installation.node.start();
  await eventually(async () => (await reported())?.asn.state === 'ready', {
    everyMs: 500,
    timeoutMs: 60_000,
    what: 'the database to be told',
  });
  await eventually(async () => (await answer(PRIVATE))[0] === 200, { what: 'the edge to serve' });
  for (const path of ['/as', '/name']) {
    t.is((await answer(OF_GOOGLE, path))[0], 403, path);
    t.is((await answer(PRIVATE, path))[0], 200, path);
  }
});

test.serial('statistics list countries and networks of visitors, as the edge found them', async (t) => {
  const { client } = installation;
  for (const visitor of [OF_GOOGLE, OF_GOOGLE, PRIVATE]) t.is((await answer(visitor))[0], 200);
  // The rules answer visitors from the Netherlands; what is blocked is a request, too.
  t.is((await answer(IN_THE_NETHERLANDS))[0], 403);
  const { items } = await client.api<{ items: { id: string }[] }>('GET', '/sites');
  const listed = await eventually(
    async () => {
      const path = `/analytics/dimensions?range=1h&siteId=${items[0]!.id}`;
      const { countries, networks } = await client.api<Output<typeof analytics.dimensions>>('GET', path);
      const found = (code: string) => countries.find(({ country }) => country === code);
      const google = networks.find(({ asn }) => asn === 15_169);
      return found('US') && found('NL') && google && { countries, google };
    },
    { everyMs: 1000, timeoutMs: 240_000, what: 'the lists of the minute' },
  );
  t.deepEqual(listed.countries.map(({ country }) => country).sort(), ['NL', 'US']);
  t.regex(listed.google.name, /google/i);
  t.true(listed.google.requests >= 2);
});
