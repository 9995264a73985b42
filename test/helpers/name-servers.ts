// Real servers of names (BIND): one that takes signed changes of its zones, one that copies them, and a resolver that asks
// both.
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Child, Processes, tail } from '../../bin/lib/processes.ts';
import { eventually } from './eventually.ts';

/** The profile that Debian has for it lets it read and write here. */
const HOME = '/var/cache/bind';

export interface Zone {
  name: string;
  /** Lines of its file beside SOA and NS. */
  records: readonly string[];
}

export interface NameServersOptions {
  /** The words that run a program where the addresses are. */
  exec: readonly string[];
  primary: { name: string; address: string };
  secondary: { name: string; address: string };
  resolver: string;
  zones: readonly Zone[];
}

export interface NameServers {
  /** The TSIG key that changes TXT records of the zones, and nothing else. */
  key: { name: string; algorithm: 'hmac-sha256'; secret: string };
  primary: Child;
  secondary: Child;
  /** Changes that the primary has taken, in their order, such as `adding _acme-challenge.example.org`. */
  changes(): string[];
  stop(): Promise<void>;
}

/** Starts the three of them and waits until all answer. */
export async function startNameServers(options: NameServersOptions): Promise<NameServers> {
  const { exec, primary, secondary, resolver, zones } = options;
  const folder = mkdtempSync(join(existsSync(HOME) ? HOME : tmpdir(), 'svc-test-'));
  const processes = new Processes(join(folder, 'processes.json'));
  const key = {
    name: 'console.example.org',
    algorithm: 'hmac-sha256',
    secret: randomBytes(32).toString('base64'),
  } as const;
  const stop = async () => {
    await processes.stopAll();
    rmSync(folder, { recursive: true, force: true });
  };
  const start = (name: string, address: string, settings: readonly string[], rest: readonly string[]): Child => {
    const home = join(folder, name);
    mkdirSync(home);
    const lines = [
      'controls { };',
      'options {',
      `  directory "${home}"; pid-file none; lock-file none; session-keyfile none;`,
      `  listen-on port 53 { ${address}; }; listen-on-v6 { none; }; query-source address ${address};`,
      '  dnssec-validation no; empty-zones-enable no;',
      ...settings.map((line) => `  ${line}`),
      '};',
      ...rest,
    ];
    writeFileSync(join(home, 'named.conf'), `${lines.join('\n')}\n`);
    const [command = '', ...args] = [...exec, 'named', '-g', '-n', '1', '-c', join(home, 'named.conf')];
    const logFile = join(home, 'named.log');
    return processes.start({ name: `name server (${name})`, command, args, env: { PATH: process.env.PATH }, logFile });
  };
  const fileOf = (zone: Zone): string => {
    const file = join(folder, `${zone.name}.zone`);
    const lines = [
      '$TTL 60',
      `@ SOA ${primary.name}. hostmaster.${zone.name}. 1 60 60 3600 1`,
      `@ NS ${primary.name}.`,
      `@ NS ${secondary.name}.`,
      ...zone.records,
    ];
    writeFileSync(file, `${lines.join('\n')}\n`);
    return file;
  };
  const primaryServer = start(
    'primary',
    primary.address,
    ['recursion no; notify-delay 0;', `notify-source ${primary.address}; allow-transfer { any; };`],
    [
      `key "${key.name}" { algorithm ${key.algorithm}; secret "${key.secret}"; };`,
      ...zones.map((zone) => {
        const policy = `update-policy { grant ${key.name} wildcard *.${zone.name} TXT; };`;
        return `zone "${zone.name}" { type primary; file "${fileOf(zone)}"; ${policy} };`;
      }),
    ],
  );
  const secondaryServer = start(
    'secondary',
    secondary.address,
    ['recursion no; notify no;', `transfer-source ${secondary.address}; allow-transfer { none; };`],
    zones.map(({ name }) => `zone "${name}" { type secondary; primaries { ${primary.address}; }; };`),
  );
  const asked = `${primary.address}; ${secondary.address};`;
  const resolverServer = start(
    'resolver',
    resolver,
    // It remembers nothing, as resolvers of authorities do.
    ['recursion yes; allow-recursion { any; }; max-cache-ttl 0; max-ncache-ttl 0;'],
    zones.map(({ name }) => `zone "${name}" { type static-stub; server-addresses { ${asked} }; };`),
  );
  const logOf = ({ logFile }: Child) => readFileSync(logFile!, 'utf8');
  try {
    for (const [server, sign, times] of [
      [primaryServer, 'all zones loaded', 1],
      [secondaryServer, 'Transfer status: success', zones.length],
      [resolverServer, 'all zones loaded', 1],
    ] as const) {
      await eventually(
        () => {
          if (!server.running()) throw new Error(tail(server.logFile));
          return logOf(server).split(sign).length > times;
        },
        { what: server.name },
      );
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    key,
    primary: primaryServer,
    secondary: secondaryServer,
    changes: () =>
      logOf(primaryServer)
        .split('\n')
        .flatMap((line) => {
          const [, action, name] = /: (adding|deleting) an RR at '?([^' ]+)'? TXT/.exec(line) ?? [];
          return action === undefined ? [] : [`${action} ${name}`];
        }),
    stop,
  };
}
