import test from 'ava';
import { EnvError, parseEnv } from '../../../runtime/env.ts';
import { VARIABLES } from '../../../runtime/env-variables.ts';

const KEY = Buffer.alloc(32, 7).toString('base64');
const VALID = {
  DATABASE_URL: 'postgres://svc:secret@db.example/svc',
  SVC_MASTER_KEY: KEY,
  SVC_PUBLIC_URL: 'https://console.example.com',
};

function refusal(env: Record<string, string | undefined>): EnvError {
  try {
    parseEnv(env);
  } catch (error) {
    if (error instanceof EnvError) return error;
    throw error;
  }
  throw new Error('the environment was accepted');
}

const refused = (env: Record<string, string | undefined>) =>
  refusal(env)
    .problems.map(({ name }) => name)
    .sort();

test('three variables are enough; everything else has its default', (t) => {
  const env = parseEnv(VALID);
  t.like(env, {
    databaseUrl: VALID.DATABASE_URL,
    databaseDirectUrl: VALID.DATABASE_URL,
    redisUrl: 'redis://127.0.0.1:6379',
    redisPrefix: '',
    transporter: null,
    publicUrl: 'https://console.example.com',
    nodeApiUrl: null,
    version: 'dev',
    downloadsDir: null,
    role: 'all',
    services: null,
    host: '0.0.0.0',
    port: 3000,
    nodeApiPort: 8443,
    connectionsPerAddress: 512,
    nodeApiConnectionsPerAddress: 2000,
    production: false,
    logLevel: 'info',
  });
  t.deepEqual(env.masterKey, Buffer.alloc(32, 7));
  t.is(env.previousMasterKey, null);
  t.deepEqual(env.trustedProxies, []);
});

test('every missing variable is named in one refusal', (t) => {
  t.deepEqual(refused({}), ['DATABASE_URL', 'SVC_MASTER_KEY', 'SVC_PUBLIC_URL']);
});

test('an empty variable is a missing one', (t) => {
  t.deepEqual(refused({ ...VALID, DATABASE_URL: '', SVC_MASTER_KEY: '  ' }), ['DATABASE_URL', 'SVC_MASTER_KEY']);
});

test('missing and malformed variables are told together, with what would be accepted', (t) => {
  const error = refusal({ SVC_PUBLIC_URL: 'ftp://x', PORT: '70000', ROLE: 'everything' });
  t.deepEqual(error.problems.map(({ name }) => name).sort(), [
    'DATABASE_URL',
    'PORT',
    'ROLE',
    'SVC_MASTER_KEY',
    'SVC_PUBLIC_URL',
  ]);
  for (const text of ['openssl rand -base64 32', 'postgres://', 'all, app, channel, worker', '0 to 65535']) {
    t.true(error.message.includes(text), text);
  }
});

test('a refusal never repeats a value', (t) => {
  const error = refusal({ ...VALID, SVC_MASTER_KEY: 'c2VjcmV0', DATABASE_URL: 'mysql://user:hunter2@db/x' });
  t.false(error.message.includes('c2VjcmV0'));
  t.false(error.message.includes('hunter2'));
});

const MALFORMED: readonly [name: string, value: string][] = [
  ['SVC_MASTER_KEY_PREVIOUS', 'c2hvcnQ='],
  ['SVC_MASTER_KEY_PREVIOUS', KEY],
  ['DATABASE_URL', 'mysql://db/x'],
  ['DATABASE_URL', 'db.example'],
  ['DATABASE_DIRECT_URL', 'http://db/x'],
  ['REDIS_URL', 'http://redis'],
  ['SVC_REDIS_PREFIX', 'white space'],
  ['SVC_MASTER_KEY', Buffer.alloc(31).toString('base64')],
  ['SVC_MASTER_KEY', Buffer.alloc(33).toString('base64')],
  ['SVC_MASTER_KEY', '0'.repeat(64)],
  ['SVC_MASTER_KEY', `${KEY}!`],
  ['SVC_PUBLIC_URL', 'http://console.example.com'],
  ['SVC_PUBLIC_URL', 'https://console.example.com/path'],
  ['SVC_PUBLIC_URL', 'https://user:pass@console.example.com'],
  ['SVC_PUBLIC_URL', 'https://console.example.com?x=1'],
  ['SVC_PUBLIC_URL', 'https://console.example.com#x'],
  ['SVC_PUBLIC_URL', 'console.example.com'],
  ['SVC_PUBLIC_URL', 'https://$(id).example.com'],
  ['SVC_PUBLIC_URL', "https://a';id;'.example.com"],
  ['SVC_PUBLIC_URL', 'https://`id`.example.com'],
  ['SVC_NODE_API_URL', 'http://nodes.example.com:8443'],
  ['SVC_NODE_API_URL', 'https://nodes.example.com/x'],
  ['SVC_NODE_API_URL', 'https://$(id).example.com:8443'],
  ['SVC_NODE_API_HOSTNAMES', 'a.example,,b.example'],
  ['SVC_NODE_API_HOSTNAMES', 'not a host'],
  ['SVC_CONNECTIONS_PER_ADDRESS', '0'],
  ['SVC_CONNECTIONS_PER_ADDRESS', '1e3'],
  ['NODE_API_CONNECTIONS_PER_ADDRESS', '100001'],
  ['SVC_TRUSTED_PROXIES', '10.0.0.0/33'],
  ['SVC_TRUSTED_PROXIES', '10.0.0.0/8,proxy.example'],
  ['SVC_TRUSTED_PROXIES', '::/129'],
  ['SVC_TRUSTED_PROXIES', '::ffff:10.0.0.0/95'],
  ['SVC_TRUSTED_PROXIES', '10.0.0.1/8/8'],
  ['SVC_TRUSTED_PROXIES', '10.0.0.1/'],
  ['SVC_TRUSTED_PROXIES', '10.0.0.0/08'],
  ['SVC_TRUSTED_PROXIES', 'fe80::1%eth0'],
  ['SVC_OUTBOUND_ALLOW_CIDRS', 'ns.example.org'],
  ['SVC_DOWNLOADS_DIR', 'relative/path'],
  ['ROLE', 'web'],
  ['SERVICES', 'bans,'],
  ['SERVICES', '../etc'],
  ['SVC_TRANSPORTER', 'nats'],
  ['HOST', 'not a host'],
  ['PORT', '-1'],
  ['PORT', '3000x'],
  ['PORT', '65536'],
  ['NODE_API_PORT', '1e3'],
  ['METRICS_PORT', 'any'],
  ['LOG_LEVEL', 'loud'],
  ['NODE_ENV', 'Production!'],
];

for (const [name, value] of MALFORMED) {
  test(`${name} refuses ${JSON.stringify(value)}`, (t) => {
    t.deepEqual(refused({ ...VALID, [name]: value }), [name]);
  });
}

for (const url of [
  'http://localhost:3000',
  'http://demo.localhost',
  'http://127.0.0.1:8080',
  'http://127.200.3.4',
  'http://[::1]:3000',
]) {
  test(`plain http is accepted for ${url}, but not in production`, (t) => {
    t.is(parseEnv({ ...VALID, SVC_PUBLIC_URL: url }).publicUrl, url);
    t.deepEqual(refused({ ...VALID, SVC_PUBLIC_URL: url, NODE_ENV: 'production' }), ['SVC_PUBLIC_URL']);
  });
}

for (const url of [
  'http://localhost.example.com',
  'http://127.0.0.1.example.com',
  'http://notlocalhost',
  'http://128.0.0.1',
]) {
  test(`plain http is refused for ${url}`, (t) => {
    t.deepEqual(refused({ ...VALID, SVC_PUBLIC_URL: url }), ['SVC_PUBLIC_URL']);
  });
}

test('the public address is kept without a trailing slash', (t) => {
  t.is(
    parseEnv({ ...VALID, SVC_PUBLIC_URL: 'https://console.example.com:8443/' }).publicUrl,
    'https://console.example.com:8443',
  );
});

test('calls go through Redis unless one process runs everything', (t) => {
  t.is(parseEnv({ ...VALID }).transporter, null);
  t.is(parseEnv({ ...VALID, ROLE: 'app' }).transporter, 'redis');
  t.is(parseEnv({ ...VALID, SERVICES: 'bans' }).transporter, 'redis');
  t.is(parseEnv({ ...VALID, SVC_TRANSPORTER: 'redis' }).transporter, 'redis');
  t.is(parseEnv({ ...VALID, ROLE: 'app', SVC_TRANSPORTER: 'none' }).transporter, null);
});

test('consoles at two ports of one host have different instance ids', (t) => {
  const id = (url: string) => parseEnv({ ...VALID, SVC_PUBLIC_URL: url }).instanceId;
  t.not(id('http://localhost:3000'), id('http://localhost:3001'));
  t.is(id('http://localhost:3000'), id('http://localhost:3000/'));
});

test('proxies may be addresses and ranges of both families', (t) => {
  const { trustedProxies } = parseEnv({ ...VALID, SVC_TRUSTED_PROXIES: '10.0.0.0/8, 192.0.2.1 ,2001:db8::/32' });
  t.deepEqual(trustedProxies, ['10.0.0.0/8', '192.0.2.1', '2001:db8::/32']);
});

test('ranges for outbound connections are read as the policy of addresses compares them', (t) => {
  const allowed = (text: string) => parseEnv({ ...VALID, SVC_OUTBOUND_ALLOW_CIDRS: text }).outboundAllow;
  t.deepEqual(allowed(''), []);
  t.deepEqual(allowed('10.1.2.3/8, 127.0.0.1,::ffff:192.168.0.0/112, FD00::/8'), [
    '10.0.0.0/8',
    '127.0.0.1/32',
    '192.168.0.0/16',
    'fd00::/8',
  ]);
});

// The table of the specification, as it stands there.
const SPECIFIED = [
  'DATABASE_URL',
  'SVC_MASTER_KEY',
  'SVC_PUBLIC_URL',
  'SVC_NODE_API_URL',
  'SVC_NODE_API_HOSTNAMES',
  'SVC_TRUSTED_PROXIES',
  'SVC_VERSION',
  'SVC_DOWNLOADS_DIR',
  'ROLE',
  'HOST',
  'PORT',
  'NODE_API_HOST',
  'NODE_API_PORT',
  'NODE_ENV',
];

test('every variable of the specification is in the table, each once and explained', (t) => {
  const names: string[] = VARIABLES.map(({ name }) => name);
  for (const name of SPECIFIED) t.true(names.includes(name), name);
  t.is(new Set(names).size, names.length);
  for (const { name, meaning, accepts } of VARIABLES) t.true(meaning.length > 10 && accepts.length > 3, name);
});
