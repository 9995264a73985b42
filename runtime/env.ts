// Configuration of a console process (specification: Console process configuration). Everything is read and judged
// once, at start, and every mistake is told together.
import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import { isAbsolute, resolve } from 'node:path';
import { formatCidr, parseCidr } from '../contract/scalars/cidr.ts';
import { LOG_LEVELS, ROLES, VARIABLES, type VariableName } from './env-variables.ts';

/** What a service folder declares: which processes load it. */
export type Role = 'app' | 'channel' | 'worker';

export interface ConsoleEnv {
  databaseUrl: string;
  /** Without a transaction pooler between: migrations, session locks. */
  databaseDirectUrl: string;
  redisUrl: string;
  /** Before every Redis key, channel and stream. */
  redisPrefix: string;
  /** Whether calls between processes go through Redis. */
  transporter: 'redis' | null;
  /** 32 bytes. */
  masterKey: Buffer;
  /** 32 bytes, while the master key is being changed; null otherwise. */
  previousMasterKey: Buffer | null;
  /** Origin of the console's external address, without a trailing slash. */
  publicUrl: string;
  /** Set by SVC_NODE_API_URL: origin, without a trailing slash. */
  nodeApiUrl: string | null;
  nodeApiHostnames: string[];
  /** Addresses and CIDRs. */
  trustedProxies: string[];
  /** CIDRs that the address policy does not hold for where people name servers that the console is to ask. */
  /** GeoIP databases for trials of rules; null: none. */
  geoipCountry: string | null;
  geoipAsn: string | null;
  outboundAllow: string[];
  /** Open at the web listener from one address. */
  connectionsPerAddress: number;
  /** Open at the node channel from one address. */
  nodeApiConnectionsPerAddress: number;
  version: string;
  downloadsDir: string | null;
  /** Folders that the console may write backups to; none: it makes none. */
  backupDirs: string[];
  role: 'all' | Role;
  /** These services and what belongs to them; `-name` leaves one out. None named, or null: those of the role. */
  services: string[] | null;
  host: string;
  port: number;
  nodeApiHost: string;
  nodeApiPort: number;
  metricsHost: string;
  metricsPort: number;
  production: boolean;
  logLevel: (typeof LOG_LEVELS)[number];
  /** Tells the cookies of two consoles on one host apart: cookies ignore ports. 8 hex digits. */
  instanceId: string;
}

export interface EnvProblem {
  name: string;
  problem: string;
}

/** Everything that is missing or malformed in the environment, in one error. */
export class EnvError extends Error {
  readonly problems: readonly EnvProblem[];

  constructor(problems: readonly EnvProblem[]) {
    super(`the environment is not valid:\n${problems.map(describe).join('\n')}`);
    this.name = 'EnvError';
    this.problems = problems;
  }
}

function describe({ name, problem }: EnvProblem): string {
  const accepts = VARIABLES.find((variable) => variable.name === name)?.accepts;
  return `  ${name}: ${problem}${accepts ? `; accepted: ${accepts}` : ''}`;
}

/** Thrown inside a parser with what is wrong; never with the value, which may be a secret. */
class Malformed extends Error {}

/** Reads the environment; throws {@link EnvError}. Unset and empty mean the same. */
export function parseEnv(source: Readonly<Record<string, string | undefined>>): ConsoleEnv {
  const problems: EnvProblem[] = [];
  const read = <T>(name: VariableName, fallback: T, parse: (value: string) => T): T => {
    const value = source[name]?.trim();
    if (!value) {
      if (VARIABLES.find((variable) => variable.name === name)!.required)
        problems.push({ name, problem: 'is missing' });
      return fallback;
    }
    try {
      return parse(value);
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      problems.push({ name, problem: error.message });
      return fallback;
    }
  };
  const nodeEnv = read('NODE_ENV', '', (value) => matching(value, /^[a-z]{1,32}$/));
  const production = nodeEnv === 'production';
  const databaseUrl = read('DATABASE_URL', '', databaseAddress);
  const publicUrl = read('SVC_PUBLIC_URL', '', (value) => publicAddress(value, production));
  const role = read('ROLE', 'all', (value) => oneOf(value, ROLES));
  const services = read<string[] | null>('SERVICES', null, (value) => names(value));
  const transporter = read('SVC_TRANSPORTER', 'auto', (value) => oneOf(value, ['auto', 'redis', 'none']));
  const alone = role === 'all' && services === null;
  const env: ConsoleEnv = {
    databaseUrl,
    databaseDirectUrl: read('DATABASE_DIRECT_URL', databaseUrl, databaseAddress),
    redisUrl: read('REDIS_URL', 'redis://127.0.0.1:6379', redisAddress),
    redisPrefix: read('SVC_REDIS_PREFIX', '', (value) => matching(value, /^[a-z0-9:-]{1,32}$/)),
    transporter: transporter === 'redis' || (transporter === 'auto' && !alone) ? 'redis' : null,
    masterKey: read('SVC_MASTER_KEY', Buffer.alloc(0), masterKey),
    previousMasterKey: read<Buffer | null>('SVC_MASTER_KEY_PREVIOUS', null, (value) =>
      otherKey(value, source.SVC_MASTER_KEY),
    ),
    publicUrl,
    nodeApiUrl: read<string | null>('SVC_NODE_API_URL', null, nodeApiAddress),
    nodeApiHostnames: read('SVC_NODE_API_HOSTNAMES', [], hostNames),
    trustedProxies: read('SVC_TRUSTED_PROXIES', [], (value) => list(value).map(addressRange)),
    outboundAllow: read('SVC_OUTBOUND_ALLOW_CIDRS', [], (value) => list(value).map(cidr)),
    connectionsPerAddress: read('SVC_CONNECTIONS_PER_ADDRESS', 512, connections),
    nodeApiConnectionsPerAddress: read('NODE_API_CONNECTIONS_PER_ADDRESS', 2000, connections),
    version: read('SVC_VERSION', 'dev', (value) => matching(value, /^[\x20-\x7e]{1,100}$/)),
    geoipCountry: read<string | null>('SVC_GEOIP_COUNTRY', null, absolutePath),
    geoipAsn: read<string | null>('SVC_GEOIP_ASN', null, absolutePath),
    downloadsDir: read<string | null>('SVC_DOWNLOADS_DIR', null, absolutePath),
    backupDirs: read<string[]>('SVC_BACKUP_DIRS', [], (value) => list(value).map(folder)),
    role,
    services,
    host: read('HOST', '0.0.0.0', hostName),
    port: read('PORT', 3000, port),
    nodeApiHost: read('NODE_API_HOST', '0.0.0.0', hostName),
    nodeApiPort: read('NODE_API_PORT', 8443, port),
    metricsHost: read('METRICS_HOST', '127.0.0.1', hostName),
    metricsPort: read('METRICS_PORT', 9464, port),
    production,
    logLevel: read('LOG_LEVEL', 'info', (value) => oneOf(value, LOG_LEVELS)),
    instanceId: createHash('sha256').update(publicUrl).digest('hex').slice(0, 8),
  };
  if (problems.length > 0) throw new EnvError(problems);
  return env;
}

function matching(value: string, pattern: RegExp): string {
  if (!pattern.test(value)) throw new Malformed('has the wrong form');
  return value;
}

function oneOf<T extends string>(value: string, choices: readonly T[]): T {
  if (!choices.includes(value as T)) throw new Malformed('is not one of the choices');
  return value as T;
}

function list(value: string): string[] {
  const items = value.split(',').map((item) => item.trim());
  if (items.includes('')) throw new Malformed('has an empty entry');
  if (items.length > 1000) throw new Malformed('has more than 1000 entries');
  return items;
}

function names(value: string): string[] {
  return list(value).map((name) => matching(name, /^-?[a-z0-9]+(-[a-z0-9]+)*$/));
}

function port(value: string): number {
  const number = /^[0-9]{1,5}$/.test(value) ? Number(value) : Number.NaN;
  if (!(number <= 65_535)) throw new Malformed('is not a port');
  return number;
}

function connections(value: string): number {
  const number = /^[1-9][0-9]{0,5}$/.test(value) ? Number(value) : Number.NaN;
  if (!(number <= 100_000)) throw new Malformed('is not a valid number');
  return number;
}

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/i;

function hostName(value: string): string {
  if (isIP(value) === 0 && !HOST_NAME.test(value)) throw new Malformed('is not a host');
  return value;
}

function hostNames(value: string): string[] {
  return list(value).map(hostName);
}

function absolutePath(value: string): string {
  if (!isAbsolute(value)) throw new Malformed('is not an absolute path');
  return value;
}

/** Without a slash at its end; not the root. */
function folder(value: string): string {
  const path = resolve(absolutePath(value));
  if (path === '/') throw new Malformed('is the root');
  return path;
}

function otherKey(value: string, current: string | undefined): Buffer {
  const key = masterKey(value);
  if (key.equals(Buffer.from(current?.trim() ?? '', 'base64'))) throw new Malformed('must differ from SVC_MASTER_KEY');
  return key;
}

function masterKey(value: string): Buffer {
  const key = Buffer.from(value, 'base64');
  // Buffer.from skips what is not base64; encoding again shows it. Padding may be missing.
  const canonical = key.toString('base64').replace(/=+$/, '');
  if (canonical !== value.replace(/=+$/, '')) throw new Malformed('is not base64');
  if (key.length !== 32) throw new Malformed(`decodes to ${key.length} bytes instead of 32`);
  return key;
}

function address(value: string, protocols: readonly string[]): URL {
  const url = URL.canParse(value) ? new URL(value) : null;
  if (!url || !protocols.includes(url.protocol) || url.hostname === '') throw new Malformed('is not a valid URL');
  return url;
}

function databaseAddress(value: string): string {
  address(value, ['postgres:', 'postgresql:']);
  return value;
}

function redisAddress(value: string): string {
  address(value, ['redis:', 'rediss:']);
  return value;
}

/** Origin of an address that has nothing beyond it. */
function bareOrigin(url: URL): string {
  if (url.username || url.password) throw new Malformed('contains credentials');
  if ((url.pathname !== '/' && url.pathname !== '') || url.search || url.hash) {
    throw new Malformed('contains a path, query or fragment');
  }
  // The parser takes `$(x)` and quotes for a host, and these addresses are pasted into shells.
  if (!HOST_NAME.test(url.hostname) && isIP(url.hostname.replace(/^\[|\]$/g, '')) === 0)
    throw new Malformed('has an invalid host');
  return url.origin;
}

function publicAddress(value: string, production: boolean): string {
  const url = address(value, ['https:', 'http:']);
  if (url.protocol === 'http:' && production) throw new Malformed('is not https');
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname)) {
    throw new Malformed('is not https and not a loopback host');
  }
  return bareOrigin(url);
}

function nodeApiAddress(value: string): string {
  return bareOrigin(address(value, ['https:']));
}

/** localhost, *.localhost, 127.0.0.0/8 and [::1], as URL.hostname writes them. */
export function isLoopbackHost(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    (isIP(hostname) === 4 && hostname.startsWith('127.'))
  );
}

function cidr(value: string): string {
  return formatCidr(parseCidr(addressRange(value))!);
}

function addressRange(value: string): string {
  if (!parseCidr(value)) throw new Malformed('has an entry that is not an IP address or CIDR');
  return value;
}
