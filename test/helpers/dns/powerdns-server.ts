// A real PowerDNS Authoritative Server with its HTTP API and the zones of the adapter suite.
import { Resolver } from 'node:dns/promises';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../bench/lib/servers.ts';
import { Processes, tail } from '../../../bin/lib/processes.ts';
import { eventually } from '../eventually.ts';
import type { ServerUnderTest } from './adapter-suite.ts';
import { faultyHttp } from './faulty-proxy.ts';
import { BIG_ZONE, ZONE } from './primary-servers.ts';

const KEY = 'key-of-the-test';

interface Rrset {
  name: string;
  type: string;
  ttl: number;
  records: { content: string; disabled: boolean }[];
}

export async function startPowerdns(): Promise<ServerUnderTest & { dnsPort: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-test-'));
  const processes = new Processes(join(folder, 'processes.json'));
  const [port, api] = [await freePort(), await freePort()];
  const settings = [
    'launch=lmdb',
    `lmdb-filename=${folder}/pdns.lmdb`,
    'lmdb-shards=1',
    `local-address=127.0.0.1`,
    `local-port=${port}`,
    `socket-dir=${folder}`,
    'api=yes',
    `api-key=${KEY}`,
    'webserver-address=127.0.0.1',
    `webserver-port=${api}`,
    'cache-ttl=0',
    'query-cache-ttl=0',
    'negquery-cache-ttl=0',
    'zone-cache-refresh-interval=0',
    'distributor-threads=1',
    'receiver-threads=1',
  ];
  writeFileSync(join(folder, 'pdns.conf'), `${settings.join('\n')}\n`);
  const logFile = join(folder, 'server.log');
  const child = processes.start({
    name: 'powerdns',
    command: 'pdns_server',
    args: [`--config-dir=${folder}`, '--daemon=no', '--guardian=no', '--disable-syslog', '--write-pid=no'],
    env: { PATH: process.env.PATH },
    logFile,
  });
  const call = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const response = await fetch(`http://127.0.0.1:${api}/api/v1/servers/localhost/zones${path}`, {
      method,
      headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`PowerDNS: ${response.status} ${text}`);
    return text === '' ? null : JSON.parse(text);
  };
  try {
    await eventually(
      async () => {
        if (!child.running()) throw new Error(tail(logFile));
        return Boolean(await call('GET', ''));
      },
      { what: 'PowerDNS' },
    );
    for (const zone of [ZONE, BIG_ZONE]) {
      const mx = {
        name: `mail.${zone}.`,
        type: 'MX',
        ttl: 60,
        records: [{ content: `10 ns1.${zone}.`, disabled: false }],
      };
      await call('POST', '', { name: `${zone}.`, kind: 'Native', nameservers: [`ns1.${zone}.`], rrsets: [mx] });
    }
  } catch (error) {
    await processes.stopAll();
    throw new Error(tail(logFile, 60), { cause: error });
  }
  const patch = (zone: string, rrsets: unknown[]) => call('PATCH', `/${zone}.`, { rrsets });
  const proxy = await faultyHttp(api, ({ method }) => method === 'PATCH');
  const resolver = new Resolver({ timeout: 1_000, tries: 2 });
  resolver.setServers([`127.0.0.1:${port}`]);
  const credentials = { server_url: `http://127.0.0.1:${proxy.port}`, api_key: KEY };
  return {
    dnsPort: port,
    zone: ZONE,
    bigZone: BIG_ZONE,
    access: { credentials, allow: ['127.0.0.0/8'] },
    wrong: { credentials: { ...credentials, api_key: 'another' }, allow: ['127.0.0.0/8'] },
    proxy,
    async add(zone, records) {
      const { rrsets } = (await call('GET', `/${zone}.`)) as { rrsets: Rrset[] };
      const before = new Map(rrsets.map((set) => [`${set.name} ${set.type}`, set.records]));
      const added = new Map<string, Rrset>();
      for (const { name, type, ttl, value } of records) {
        const key = `${name}. ${type}`;
        const set = added.get(key) ?? { name: `${name}.`, type, ttl, records: [...(before.get(key) ?? [])] };
        set.records.push({ content: contentOf(type, value), disabled: false });
        added.set(key, set);
      }
      await patch(
        zone,
        [...added.values()].map((set) => ({ ...set, changetype: 'REPLACE' })),
      );
    },
    async remove(zone, name, type) {
      await patch(zone, [{ name: `${name}.`, type, changetype: 'DELETE' }]);
    },
    async resolve(name, type) {
      if (type === 'A') return resolver.resolve4(name);
      if (type === 'CNAME') return resolver.resolveCname(name);
      return (await resolver.resolveTxt(name)).map((parts) => parts.join(''));
    },
    async stop() {
      await proxy.close();
      await processes.stopAll();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function contentOf(type: string, value: string): string {
  if (type === 'TXT') return `"${value}"`;
  return type === 'CNAME' ? `${value}.` : value;
}
