// Real primary servers that take signed updates and transfers: BIND and Knot, each with the zones of the adapter suite.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../bench/lib/servers.ts';
import { Processes, tail } from '../../../bin/lib/processes.ts';
import type { SingleRecord } from '../../../services/dns/adapters/kit/sets.ts';
import { quoteTxt } from '../../../services/dns/adapters/kit/values.ts';
import { eventually } from '../eventually.ts';
import type { ServerUnderTest } from './adapter-suite.ts';
import { faultyDns } from './faulty-proxy.ts';

export const ZONE = 'zone.example.org';
export const BIG_ZONE = 'big.example.net';
/** The profile that Debian has for BIND lets it read and write here. */
const BIND_HOME = '/var/cache/bind';
const ALGORITHM = 'hmac-sha384';
const KEY = 'console.example.org';

export type Program = 'bind' | 'knot';

export async function startPrimary(program: Program): Promise<ServerUnderTest> {
  const folder = mkdtempSync(join(program === 'bind' && existsSync(BIND_HOME) ? BIND_HOME : tmpdir(), 'svc-test-'));
  mkdirSync(join(folder, 'db'));
  const processes = new Processes(join(folder, 'processes.json'));
  const port = await freePort();
  const secret = randomBytes(48).toString('base64');
  for (const zone of [ZONE, BIG_ZONE]) {
    const lines = ['$TTL 60', `@ SOA ns1.${zone}. hostmaster.${zone}. 1 60 60 3600 1`, `@ NS ns1.${zone}.`];
    const glue = ['ns1 A 192.0.2.53', 'mail MX 10 ns1', 'srv SRV 1 1 443 ns1', '@ CAA 0 issue "ca.example"'];
    writeFileSync(join(folder, `${zone}.zone`), `${[...lines, ...glue].join('\n')}\n`);
  }
  const file = join(folder, 'server.conf');
  writeFileSync(file, `${(program === 'bind' ? bindConfig : knotConfig)(folder, port, secret).join('\n')}\n`);
  const logFile = join(folder, 'server.log');
  const [command, args] = program === 'bind' ? ['named', ['-g', '-n', '1', '-c', file]] : ['knotd', ['-c', file]];
  const child = processes.start({ name: program, command, args, env: { PATH: process.env.PATH }, logFile });
  const resolver = new Resolver({ timeout: 1_000, tries: 1 });
  resolver.setServers([`127.0.0.1:${port}`]);
  try {
    await eventually(
      async () => {
        if (!child.running()) throw new Error(tail(logFile));
        return Boolean((await resolver.resolveSoa(ZONE)) && (await resolver.resolveSoa(BIG_ZONE)));
      },
      { what: program },
    );
  } catch (error) {
    await processes.stopAll();
    throw new Error(tail(logFile, 60), { cause: error });
  }
  const proxy = await faultyDns(port);
  const update = (zone: string, lines: readonly string[]) =>
    updateByHand(
      join(folder, 'by-hand'),
      [`server 127.0.0.1 ${port}`, `zone ${zone}.`, ...lines, 'send', 'quit'],
      secret,
    );
  const credentials = {
    server: `127.0.0.1:${proxy.port}`,
    tsig_key_name: KEY,
    tsig_algorithm: ALGORITHM,
    tsig_secret: secret,
  };
  return {
    zone: ZONE,
    bigZone: BIG_ZONE,
    access: { credentials, allow: ['127.0.0.0/8'] },
    wrong: {
      credentials: { ...credentials, tsig_secret: randomBytes(48).toString('base64') },
      allow: ['127.0.0.0/8'],
    },
    proxy,
    add: (zone, records) => update(zone, records.map(lineOf)),
    remove: (zone, name, type) => update(zone, [`del ${name}. ${type}`]),
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

function lineOf({ name, type, ttl, value }: SingleRecord): string {
  const data = type === 'TXT' ? quoteTxt(value) : type === 'CNAME' ? `${value}.` : value;
  return `add ${name}. ${ttl} ${type} ${data}`;
}

/** With a client of others. */
async function updateByHand(file: string, lines: readonly string[], secret: string): Promise<void> {
  writeFileSync(file, `${lines.join('\n')}\n`);
  await new Promise<void>((resolve, reject) => {
    const key = `${ALGORITHM}:${KEY}:${secret}`;
    execFile('knsupdate', ['-v', '-y', key, file], { timeout: 30_000 }, (error, out, said) => {
      if (error || /failed|error/i.test(out + said)) reject(new Error(`knsupdate: ${out}${said}`, { cause: error }));
      else resolve();
    });
  });
}

function bindConfig(folder: string, port: number, secret: string): string[] {
  return [
    'controls { };',
    'options {',
    `  directory "${folder}"; pid-file none; lock-file none; session-keyfile none;`,
    `  listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; };`,
    '  recursion no; notify no; dnssec-validation no; empty-zones-enable no;',
    '};',
    `key "${KEY}" { algorithm ${ALGORITHM}; secret "${secret}"; };`,
    ...[ZONE, BIG_ZONE].map(
      (zone) =>
        `zone "${zone}" { type primary; file "${zone}.zone"; allow-update { key ${KEY}; }; allow-transfer { key ${KEY}; }; };`,
    ),
  ];
}

function knotConfig(folder: string, port: number, secret: string): string[] {
  return [
    'server:',
    `  listen: 127.0.0.1@${port}`,
    `  rundir: ${folder}`,
    '  udp-workers: 1',
    '  tcp-workers: 2',
    'log:',
    '  - target: stderr',
    '    any: info',
    'database:',
    `  storage: ${folder}/db`,
    '  journal-db-max-size: 64M',
    '  kasp-db-max-size: 8M',
    '  timer-db-max-size: 8M',
    'key:',
    `  - id: ${KEY}`,
    `    algorithm: ${ALGORITHM}`,
    `    secret: ${secret}`,
    'acl:',
    '  - id: console',
    `    key: ${KEY}`,
    '    action: [transfer, update]',
    'zone:',
    ...[ZONE, BIG_ZONE].flatMap((zone) => [
      `  - domain: ${zone}`,
      `    file: ${folder}/${zone}.zone`,
      '    acl: console',
    ]),
  ];
}
