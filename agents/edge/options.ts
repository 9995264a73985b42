// Options of the edge agent's commands.

import { resolve } from 'node:path';
import type { LogLevel } from '../kit/log.ts';
import { type OptionSpec, type OptionValue, UsageError } from '../kit/options.ts';
import { parsePin, parseServerUrl } from '../kit/pinned-tls.ts';
import { parseCidr } from './bans/cidr.ts';

function problemOf(parse: (text: string) => unknown): (text: string) => string | undefined {
  return (text) => {
    try {
      parse(text);
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  };
}

/** In the place of addresses, and of a socket, where there are to be none. */
const NO_ADDRESS = 'none';

/** Where a holder of sockets answers: a path that was given, the one that is the supervisor's own, or nowhere. */
export function holderOf(given: string | undefined, own: string): { path: string | undefined; isOwn: boolean } {
  if (given === undefined) return { path: own, isOwn: true };
  return { path: given === NO_ADDRESS ? undefined : resolve(given), isOwn: false };
}

/** The addresses of a list. */
export function addressesOf(list: readonly string[]): readonly string[] {
  return list.filter((text) => text !== NO_ADDRESS);
}

function checkListen(text: string): string | undefined {
  const match = /^(?:\[[0-9a-fA-F:.]+\]|[^:[\]\s/]*):(\d{1,5})$/.exec(text);
  return match && Number(match[1]) >= 1 && Number(match[1]) <= 65_535 ? undefined : `"${text}" is not [address]:port`;
}

const stateDir: OptionSpec = {
  name: 'state-dir',
  kind: 'text',
  placeholder: 'FOLDER',
  default: '/var/lib/svc-edge',
  help: 'Folder for identity and journals, made private (0700).',
};
const runDir: OptionSpec = {
  name: 'run-dir',
  kind: 'text',
  placeholder: 'FOLDER',
  help: 'Folder for socket and status, best in a tmpfs, made private (0700). Default: one found for the state folder.',
};
const logLevel: OptionSpec = {
  name: 'log-level',
  kind: 'choice',
  choices: ['debug', 'info', 'warn', 'error'],
  default: 'info',
  help: 'Lowest severity to log.',
};

export const ENROLL_OPTIONS: readonly OptionSpec[] = [
  stateDir,
  {
    name: 'server',
    kind: 'text',
    placeholder: 'https://HOST:8443',
    check: problemOf(parseServerUrl),
    help: 'Node channel of the console.',
  },
  {
    name: 'ca-sha256',
    kind: 'text',
    placeholder: 'HEX',
    check: problemOf(parsePin),
    help: "SHA-256 of the console's certificate authority. Nothing is sent to a server without a matching certificate.",
  },
  {
    name: 'token',
    kind: 'text',
    secret: true,
    placeholder: 'ewt_…',
    help: 'One-time token. Prefer standard input or SVC_TOKEN, because other users can see arguments.',
  },
  {
    name: 'server-name',
    kind: 'text',
    placeholder: 'NAME',
    help: "Name in the console's certificate if it differs from the host of --server.",
  },
  {
    name: 'node-name',
    kind: 'text',
    placeholder: 'NAME',
    help: "Host name to report instead of the machine's, at most 64 characters.",
    check: (text) => (text.length <= 64 ? undefined : 'longer than 64 characters'),
  },
  { name: 'force', kind: 'flag', help: 'Replace an existing identity.' },
  logLevel,
];

const AGENT_OPTIONS: readonly OptionSpec[] = [
  stateDir,
  runDir,
  {
    name: 'ban-capacity',
    kind: 'integer',
    placeholder: 'ENTRIES',
    default: 100_000,
    min: 100,
    max: 10_000_000,
    help: 'Maximum number of bans.',
  },
  {
    name: 'kernel-bans',
    kind: 'choice',
    choices: ['auto', 'on', 'off'],
    default: 'auto',
    help: 'Drop global bans in the kernel. auto: if it works. on: report an error if it does not. off: never.',
  },
  { name: 'nft-bin', kind: 'text', placeholder: 'PATH', default: 'nft', help: 'Path of the nft tool.' },
  {
    name: 'nft-table',
    kind: 'text',
    placeholder: 'NAME',
    check: (text) =>
      /^svc[a-z0-9_]{0,28}$/.test(text) ? undefined : 'must be svc followed by up to 28 of a-z, 0-9 and _',
    help: 'nftables table of this node (family inet). Default: svc_ and the first characters of the node ID.',
  },
  {
    name: 'proxy-peers',
    kind: 'list',
    placeholder: 'CIDR',
    default: [],
    check: (text) => (parseCidr(text) ? undefined : `"${text}" is not an address or CIDR`),
    help:
      'Load balancers that may send a PROXY protocol header. Kernel bans never drop them. Without this ' +
      'option every peer may send one, and no address in it is exempt.',
  },
  logLevel,
];

export const RUN_OPTIONS: readonly OptionSpec[] = AGENT_OPTIONS;

export const SUPERVISE_OPTIONS: readonly OptionSpec[] = [
  ...AGENT_OPTIONS,
  {
    name: 'caddy-bin',
    kind: 'text',
    placeholder: 'PATH',
    default: 'svc-caddy',
    help: 'Path of the edge server binary.',
  },
  {
    name: 'http-listen',
    kind: 'list',
    placeholder: '[ADDRESS]:PORT',
    default: [':80'],
    check: checkListen,
    help: 'Address to serve HTTP on.',
  },
  {
    name: 'https-listen',
    kind: 'list',
    placeholder: '[ADDRESS]:PORT',
    default: [':443'],
    check: (text) => (text === NO_ADDRESS ? undefined : checkListen(text)),
    help: 'Address to serve HTTPS on, or none. If it cannot be opened, the node reports it to the console and tries again.',
  },
  {
    name: 'hold-socket',
    kind: 'text',
    placeholder: 'PATH',
    help:
      'Socket of a running "svc-caddy hold", which keeps ports open while the supervisor is restarted, or none. ' +
      'Default: the supervisor runs one, which ends with it.',
  },
  {
    name: 'geoip-country',
    kind: 'text',
    placeholder: 'FILE',
    help: 'Country database (MaxMind DB). The edge server may read its folder and checks for a new file every minute.',
  },
  {
    name: 'geoip-asn',
    kind: 'text',
    placeholder: 'FILE',
    help: 'Autonomous system database (MaxMind DB), handled like the country database.',
  },
  {
    name: 'metrics-listen',
    kind: 'text',
    placeholder: '[ADDRESS]:PORT',
    check: checkListen,
    help: 'Address to serve metrics for Prometheus on. Without it only the socket of the data plane has them.',
  },
  {
    name: 'metrics-site',
    kind: 'list',
    placeholder: 'ID',
    default: [],
    check: (text) => (/^[A-Za-z0-9_-]{1,64}$/.test(text) ? undefined : `"${text}" is not the ID of a site`),
    help: 'Site with metrics of its own, or all; at most 200. all takes the first sites with requests.',
  },
  {
    name: 'replace-after',
    kind: 'integer',
    placeholder: 'SECONDS',
    default: 30,
    min: 3,
    max: 3600,
    help: 'Replace an edge server that runs but has been unresponsive for this time.',
  },
  {
    name: 'ban-max-mib',
    kind: 'integer',
    placeholder: 'MIB',
    default: 32,
    min: 1,
    max: 4096,
    aliases: ['ban-dict-mb'],
    help: 'Memory limit for bans in the data plane, in MiB.',
  },
  {
    name: 'max-connections',
    kind: 'integer',
    placeholder: 'NUMBER',
    default: 0,
    min: 0,
    max: 10_000_000,
    help: 'Limit of open client connections. 0: derived from the open file and memory limits.',
  },
  {
    name: 'max-connections-per-network',
    kind: 'integer',
    placeholder: 'NUMBER',
    default: 0,
    min: 0,
    max: 10_000_000,
    help: 'Limit of client connections from one /24 (IPv6: /48), except trusted proxies. 0: a quarter of the total.',
  },
  {
    name: 'max-connections-per-address',
    kind: 'integer',
    placeholder: 'NUMBER',
    default: 0,
    min: 0,
    max: 10_000_000,
    help: 'Limit of client connections from one address (IPv6: /64), except trusted proxies. 0: half of the limit of a network.',
  },
  {
    name: 'max-request-mib',
    kind: 'integer',
    placeholder: 'NUMBER',
    default: 0,
    min: 0,
    max: 1_048_576,
    help: 'Memory of requests in progress and their bodies, MiB; 0 is an eighth of the memory.',
  },
  {
    name: 'max-request-mib-per-network',
    kind: 'integer',
    placeholder: 'NUMBER',
    default: 0,
    min: 0,
    max: 1_048_576,
    help: 'Of it for one /24 (IPv6: /48), MiB; 0 is a quarter of all, at most 24.',
  },
  {
    name: 'max-connections-per-origin',
    kind: 'integer',
    placeholder: 'N',
    default: 0,
    min: 0,
    max: 10_000_000,
    help: 'Connections in use to one address and port of an origin; 0 is a quarter of what the node can hold.',
  },
  {
    name: 'origin-stale-seconds',
    kind: 'integer',
    placeholder: 'SECONDS',
    default: 3600,
    min: 1,
    max: 604_800,
    help: 'While DNS does not respond, use the last addresses of origins for this time.',
  },
  {
    name: 'max-body-minutes',
    kind: 'integer',
    placeholder: 'NUMBER',
    default: 360,
    min: 1,
    max: 10_080,
    help: 'Longest time that the node waits for the client of one request body, in all, minutes.',
  },
];

export const STATUS_OPTIONS: readonly OptionSpec[] = [
  stateDir,
  runDir,
  { name: 'json', kind: 'flag', help: 'Print the status as JSON.' },
];

/** Typed access to parsed values. */
export class Options {
  private readonly values: ReadonlyMap<string, OptionValue>;

  constructor(values: ReadonlyMap<string, OptionValue>) {
    this.values = values;
  }

  text(name: string): string | undefined {
    return this.values.get(name) as string | undefined;
  }

  required(name: string): string {
    const value = this.text(name);
    if (value === undefined) throw new UsageError(`--${name} is required`);
    return value;
  }

  /** A file or folder as an absolute path; undefined when it is not given. */
  path(name: string): string | undefined {
    const value = this.text(name);
    return value === undefined ? undefined : resolve(value);
  }

  integer(name: string): number {
    return this.values.get(name) as number;
  }

  list(name: string): readonly string[] {
    return this.values.get(name) as readonly string[];
  }

  flag(name: string): boolean {
    return this.values.get(name) === true;
  }

  get logLevel(): LogLevel {
    return this.text('log-level') as LogLevel;
  }
}
