// Route 53 as moto has it, with the zones of the adapter suite. Moto checks no credentials.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../bench/lib/servers.ts';
import { Processes, tail } from '../../../bin/lib/processes.ts';
import type { SingleRecord } from '../../../services/dns/adapters/kit/sets.ts';
import { eventually } from '../eventually.ts';
import { ensurePythonTool } from '../python-tool.ts';
import type { ServerUnderTest } from './adapter-suite.ts';
import { faultyHttp } from './faulty-proxy.ts';
import { BIG_ZONE, ZONE } from './primary-servers.ts';

const NAMESPACE = 'https://route53.amazonaws.com/doc/2013-04-01/';

export async function startMoto(): Promise<ServerUnderTest> {
  const commands = await ensurePythonTool('moto');
  const folder = mkdtempSync(join(tmpdir(), 'svc-test-'));
  const processes = new Processes(join(folder, 'processes.json'));
  const port = await freePort();
  const logFile = join(folder, 'moto.log');
  const child = processes.start({
    name: 'moto',
    command: join(commands, 'moto_server'),
    args: ['-H', '127.0.0.1', '-p', String(port)],
    env: { PATH: process.env.PATH },
    logFile,
  });
  const call = async (method: string, path: string, body?: string): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${port}/2013-04-01${path}`, {
      method,
      headers: { authorization: 'AWS4-HMAC-SHA256 Credential=hand/20260101/us-east-1/route53/aws4_request' },
      ...(body === undefined ? {} : { body }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`moto: ${response.status} ${text}`);
    return text;
  };
  const ids = new Map<string, string>();
  try {
    await eventually(
      async () => {
        if (!child.running()) throw new Error(tail(logFile));
        return Boolean(await call('GET', '/hostedzone'));
      },
      { what: 'moto' },
    );
    for (const zone of [ZONE, BIG_ZONE]) {
      const body = `<CreateHostedZoneRequest xmlns="${NAMESPACE}"><Name>${zone}.</Name><CallerReference>${zone}</CallerReference></CreateHostedZoneRequest>`;
      const made = await call('POST', '/hostedzone', body);
      ids.set(zone, /<Id>[/]hostedzone[/]([A-Z0-9]+)<[/]Id>/.exec(made)![1]!);
    }
  } catch (error) {
    await processes.stopAll();
    throw new Error(tail(logFile, 60), { cause: error });
  }
  const setsOf = async (zone: string, name: string, type: string): Promise<string[]> => {
    const xml = await call('GET', `/hostedzone/${ids.get(zone)}/rrset?name=${name}.&type=${type}`);
    const sets = [...xml.matchAll(/<ResourceRecordSet>[\s\S]*?<[/]ResourceRecordSet>/g)].map(([set]) => set);
    return sets.filter((set) => set.includes(`<Name>${name}.</Name>`) && set.includes(`<Type>${type}</Type>`));
  };
  const change = (zone: string, changes: readonly string[]) =>
    call(
      'POST',
      `/hostedzone/${ids.get(zone)}/rrset/`,
      `<ChangeResourceRecordSetsRequest xmlns="${NAMESPACE}"><ChangeBatch><Changes>${changes.join('')}</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>`,
    );
  const proxy = await faultyHttp(port, ({ method }) => method === 'POST');
  const credentials = { access_key_id: 'AKIATEST', secret_access_key: 'a secret of the test' };
  const access = { endpoint: `http://127.0.0.1:${proxy.port}`, credentials, allow: ['127.0.0.0/8'] };
  return {
    zone: ZONE,
    bigZone: BIG_ZONE,
    access,
    wrong: null,
    proxy,
    async add(zone, records) {
      const sets = Map.groupBy(records, ({ name, type }) => `${name} ${type}`);
      // A zone to be filled has none of the names yet: looking for each would take minutes.
      const looks = records.length < 10;
      const changes: string[] = [];
      for (const [first, ...rest] of sets.values()) {
        const { name, type, ttl } = first!;
        const [there] = looks ? await setsOf(zone, name, type) : [];
        const before = [...(there ?? '').matchAll(/<Value>([\s\S]*?)<[/]Value>/g)].map(([, value]) => value!);
        const values = [...before, ...[first!, ...rest].map(contentOf)];
        const listed = values.map((value) => `<ResourceRecord><Value>${value}</Value></ResourceRecord>`).join('');
        changes.push(
          `<Change><Action>UPSERT</Action><ResourceRecordSet><Name>${name}.</Name><Type>${type}</Type><TTL>${ttl}</TTL><ResourceRecords>${listed}</ResourceRecords></ResourceRecordSet></Change>`,
        );
      }
      for (let from = 0; from < changes.length; from += 500) await change(zone, changes.slice(from, from + 500));
    },
    async remove(zone, name, type) {
      const sets = await setsOf(zone, name, type);
      await change(
        zone,
        sets.map((set) => `<Change><Action>DELETE</Action>${set}</Change>`),
      );
    },
    resolve: null,
    async stop() {
      await proxy.close();
      await processes.stopAll();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function contentOf({ type, value }: SingleRecord): string {
  if (type === 'TXT') return `&quot;${value}&quot;`;
  return type === 'CNAME' ? `${value}.` : value;
}
