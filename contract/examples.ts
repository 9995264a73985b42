// One example value of a schema, the same each time: what the schema itself gives (`examples`, `const`, `default`, `enum`),
// else what its name says, else the least that fits.

/** As much of JSON Schema as the contract uses. */
export interface JsonSchema {
  readonly type?: string;
  readonly const?: unknown;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly format?: string;
  readonly minimum?: number;
  readonly description?: string;
  readonly [keyword: string]: unknown;
}

/** Texts by the name of their field, for schemas that take any text. */
const TEXTS: Readonly<Record<string, string>> = {
  id: '0199f2c4-7a10-7c3e-9a55-2f1d6c0b8e21',
  action: 'site.create',
  actions: 'site.create',
  address: '203.0.113.7',
  addresses: '198.51.100.20',
  agentVersion: '1.4.0',
  appliedContentHash: '9f2c7a10',
  arch: 'amd64',
  caSha256: '9f2c7a1055e1d6c0b8e219f2c7a1055e1d6c0b8e219f2c7a1055e1d6c0b8e219',
  certFingerprint: '9f2c7a1055e1d6c0b8e219f2c7a1055e1d6c0b8e219f2c7a1055e1d6c0b8e219',
  chainPem: '-----BEGIN CERTIFICATE-----\nMIIB…\n-----END CERTIFICATE-----',
  cidr: '203.0.113.0/24',
  cidrs: '203.0.113.0/24',
  code: 'eu',
  consoleUrl: 'https://console.example',
  contentHash: '9f2c7a10',
  description: 'Sites of customers',
  domains: 'www.example.com',
  effectiveUrl: 'https://console.example:8443',
  email: 'operator@example.com',
  engine: 'caddy',
  engineVersion: '2.10.0',
  entries: '203.0.113.0/24',
  group: '',
  header: 'x-client-ip',
  hostHeader: '',
  hostname: 'edge-1',
  installCommand: 'curl -fsSL https://console.example/install.sh | sh',
  ip: '198.51.100.4',
  ipAddresses: '198.51.100.20',
  kind: 'site',
  metric: 'ip_qps',
  missingFeatures: 'challenge-v1',
  nodeApiUrl: 'https://console.example:8443',
  nodeCaSha256: '9f2c7a1055e1d6c0b8e219f2c7a1055e1d6c0b8e219f2c7a1055e1d6c0b8e219',
  os: 'linux',
  password: 'correct horse battery staple',
  path: '/login',
  privateKeyPem: '-----BEGIN PRIVATE KEY-----\nMIGH…\n-----END PRIVATE KEY-----',
  prefix: 'ewk_9f2c7a10',
  probe: 'www.example.com',
  publicUrl: 'https://console.example',
  reasonCode: 'site_updated',
  remoteAddress: '198.51.100.20',
  scopes: 'sites:read',
  search: 'example',
  secret: 'ewk_9f2c7a1055e1d6c0b8e21',
  serverUrl: 'https://console.example:8443',
  setupToken: '9f2c7a1055e1d6c0b8e21',
  sni: '',
  supportedFeatures: 'bans-v1',
  targetType: 'site',
  targetTypes: 'site',
  token: 'ewt_9f2c7a1055e1d6c0b8e21',
  trustedCidrs: '198.51.100.0/24',
  type: 'user',
  uncovered: 'www.example.com',
  unappliedIds: '0199f2c4-7a10-7c3e-9a55-2f1d6c0b8e21',
  url: 'https://console.example:8443',
  userAgent: 'curl/8.14.1',
  value: '203.0.113.7',
  version: '1.4.0',
};
const TIMESTAMP = '2026-01-15T09:30:00.000Z';

/**
 * A value that the schema accepts; `name` is the field it is of. Of an object's fields those that must be there are
 * shown, and with `all`, or when none must be, every one.
 */
export function exampleOf(schema: JsonSchema, name = '', all = false): unknown {
  const [given] = schema.examples ?? [];
  if (given !== undefined) return given;
  if (schema.const !== undefined) return schema.const;
  if (schema.anyOf) return exampleOf(schema.anyOf.find(({ type }) => type !== 'null') ?? {}, name, all);
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  switch (schema.type) {
    case 'object':
      return exampleObject(schema, all);
    case 'array':
      return [exampleOf(schema.items ?? {}, name, all)];
    case 'string':
      return exampleText(schema, name);
    case 'integer':
    case 'number':
      // A list is shown with one item.
      return name === 'total' ? 1 : (schema.minimum ?? 1);
    case 'boolean':
      return true;
    default:
      return null;
  }
}

function exampleObject({ properties = {}, required = [] }: JsonSchema, all: boolean): Record<string, unknown> {
  const whole = all || required.length === 0;
  const shown = Object.entries(properties).filter(([name]) => whole || required.includes(name));
  return Object.fromEntries(shown.map(([name, property]) => [name, exampleOf(property, name, all)]));
}

function exampleText({ format, pattern }: JsonSchema, name: string): string {
  if (format === 'date-time') return TIMESTAMP;
  const known = TEXTS[name];
  if (known !== undefined && (typeof pattern !== 'string' || new RegExp(pattern, 'u').test(known))) return known;
  if (name.endsWith('Id')) return TEXTS.id!;
  const texts = ['main', '42', `${TEXTS.id}=42`];
  return texts.find((text) => typeof pattern !== 'string' || new RegExp(pattern, 'u').test(text)) ?? '';
}
