// The variables of a console process, as data: the parser's errors and the generated reference read this table.

export interface Variable {
  readonly name: string;
  readonly meaning: string;
  /** Form of a valid value; an error about the variable names it. */
  readonly accepts: string;
  readonly required: boolean;
  /** Text of the default; null when there is none. */
  readonly default: string | null;
}

export const ROLES = ['all', 'app', 'channel', 'worker'] as const;
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

const PORT = 'a port, 0 to 65535';
const ADDRESS = 'an IP address or host name';
const CONNECTIONS = 'a number, 1 to 100000';

function variable(name: string, accepts: string, fallback: string | null, meaning: string): Variable {
  return { name, accepts, default: fallback, meaning, required: false };
}

function required(name: string, accepts: string, meaning: string): Variable {
  return { name, accepts, default: null, meaning, required: true };
}

export const VARIABLES = [
  required('DATABASE_URL', 'postgres://user:password@host:port/database', 'PostgreSQL 18 connection string'),
  required(
    'SVC_MASTER_KEY',
    '32 random bytes in base64; make one with: openssl rand -base64 32',
    'Key that seals every stored secret; keep it apart from database backups',
  ),
  variable(
    'SVC_MASTER_KEY_PREVIOUS',
    '32 bytes in base64, different from SVC_MASTER_KEY',
    null,
    'Previous master key, until `npm run reseal` has sealed every secret under the new one; it opens secrets and seals none',
  ),
  required(
    'SVC_PUBLIC_URL',
    'https://host[:port]; http only for localhost, *.localhost, 127.0.0.0/8 and [::1] outside NODE_ENV=production',
    'Public URL of the console',
  ),
  variable(
    'DATABASE_DIRECT_URL',
    'postgres://user:password@host:port/database',
    'DATABASE_URL',
    'Connection to the same database without a transaction pooler, for migrations, lasting locks and dedicated connections',
  ),
  variable('REDIS_URL', 'redis://host:port[/database] or rediss://…', 'redis://127.0.0.1:6379', 'Redis or Valkey'),
  variable(
    'SVC_REDIS_PREFIX',
    'up to 32 characters of a-z, 0-9, - and :',
    '',
    'Prefix of every key, channel and stream; several consoles can then share one Redis',
  ),
  variable('ROLE', ROLES.join(', '), 'all', 'Part of the console that the process runs'),
  variable(
    'SERVICES',
    'comma-separated names of folders in services/, -name to leave one out',
    '',
    'Runs these services, their jobs, feeds and relay, instead of the services of ROLE; with -name alone, those of ROLE without it',
  ),
  variable(
    'SVC_TRANSPORTER',
    'auto, redis, none',
    'auto',
    'Transport of calls between processes; auto: redis, except for ROLE=all without SERVICES',
  ),
  variable('HOST', ADDRESS, '0.0.0.0', 'Web listener: address'),
  variable('PORT', PORT, '3000', 'Web listener: port'),
  variable('NODE_API_HOST', ADDRESS, '0.0.0.0', 'Node channel listener: address'),
  variable('NODE_API_PORT', PORT, '8443', 'Node channel listener: port'),
  variable(
    'SVC_NODE_API_URL',
    'https://host[:port] without path, query, fragment or credentials',
    'the host of SVC_PUBLIC_URL on port 8443',
    'Address of the node channel, until one is saved in the settings',
  ),
  variable(
    'SVC_NODE_API_HOSTNAMES',
    'comma-separated host names or IP addresses',
    '',
    'Additional names in the certificate of the node channel',
  ),
  variable(
    'SVC_TRUSTED_PROXIES',
    'comma-separated IP addresses or CIDRs',
    '',
    'Reverse proxies whose forwarded client address is trusted; empty: the client is the peer of the connection',
  ),
  variable(
    'SVC_OUTBOUND_ALLOW_CIDRS',
    'comma-separated IP addresses or CIDRs',
    '',
    'Private and other special ranges that servers of DNS credentials may use; empty: public addresses only',
  ),
  variable(
    'SVC_CONNECTIONS_PER_ADDRESS',
    CONNECTIONS,
    '512',
    'Web listener: open connections per address (IPv6 /64); trusted proxies are not counted',
  ),
  variable(
    'NODE_API_CONNECTIONS_PER_ADDRESS',
    CONNECTIONS,
    '2000',
    'Node channel listener: open connections per address; nodes behind one address share it, and each uses one or two',
  ),
  variable(
    'SVC_VERSION',
    'up to 100 printable characters',
    'dev',
    'Version that the health check and the settings report',
  ),
  variable(
    'SVC_GEOIP_COUNTRY',
    'an absolute path',
    null,
    'Database of countries in the format of MaxMind, for tests of rules; unset: a test needs the country',
  ),
  variable(
    'SVC_GEOIP_ASN',
    'an absolute path',
    null,
    'Database of autonomous systems in the format of MaxMind, for tests of rules; unset: a test needs the number',
  ),
  variable('SVC_DOWNLOADS_DIR', 'an absolute path', null, 'Folder served under /downloads/; unset: 404 there'),
  variable(
    'SVC_BACKUP_DIRS',
    'comma-separated absolute paths',
    '',
    'Folders that scheduled backups may be written to and below; of the processes with jobs, only those with it make backups',
  ),
  variable('METRICS_HOST', ADDRESS, '127.0.0.1', 'Internal listener for /metrics, /livez and /readyz: address'),
  variable('METRICS_PORT', PORT, '9464', 'Internal listener: port; 0 takes a free one'),
  variable('LOG_LEVEL', LOG_LEVELS.join(', '), 'info', 'Lowest severity that is logged'),
  variable(
    'NODE_ENV',
    'up to 32 characters of a-z',
    '',
    'production: limits sign-in attempts, and requires https in SVC_PUBLIC_URL',
  ),
] as const satisfies readonly Variable[];

export type VariableName = (typeof VARIABLES)[number]['name'];
