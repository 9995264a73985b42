// Credentials as they are stored: fields that are no secret as they are, the secret ones sealed together.
import { badField } from '../../../contract/errors.ts';
import { type DnsCredentialRow, dnsSecretPlace } from '../../../models/certificates/dns-credential.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { AdapterKind, CredentialField, DnsAdapter } from './adapter.ts';
import { adapterKind } from './catalog.ts';

export type Credentials = Readonly<Record<string, string>>;

/**
 * Checks credentials for a provider and returns those that were given. Throws BAD_REQUEST with the path of the wrong field
 * below `path`.
 */
export function checkCredentials(kind: AdapterKind, given: Credentials, path = '/credentials'): Credentials {
  for (const key of Object.keys(given)) {
    if (!kind.fields.some((field) => field.key === key))
      badField(`${path}/${key}`, 'notOfProvider', { provider: kind.key });
  }
  const entries = kind.fields.flatMap((field): [string, string][] => {
    const value = given[field.key]?.trim() ?? '';
    if (value === '') return field.required ? badField(`${path}/${field.key}`, 'required') : [];
    if (!isValid(field, value)) badField(`${path}/${field.key}`, 'pattern');
    return [[field.key, value]];
  });
  const checked = Object.fromEntries(entries);
  const wrong = kind.check?.(checked) ?? null;
  if (wrong !== null) badField(`${path}/${wrong}`, 'pattern');
  return checked;
}

function isValid({ pattern, maxLength, options }: CredentialField, value: string): boolean {
  if (value.length > maxLength) return false;
  if (options.length > 0 && !options.includes(value)) return false;
  return pattern === null || new RegExp(pattern).test(value);
}

/** What is stored in clear, and the text to seal. A kind with one secret field stores its value, others store JSON. */
export function splitCredentials(kind: AdapterKind, credentials: Credentials): { fields: Credentials; secret: string } {
  const secrets = secretFields(kind);
  const part = (isSecret: boolean) =>
    Object.fromEntries(Object.entries(credentials).filter(([key]) => secrets.includes(key) === isSecret));
  const secret = secrets.length === 1 ? (credentials[secrets[0]!] ?? '') : JSON.stringify(part(true));
  return { fields: part(false), secret };
}

export function joinCredentials(kind: AdapterKind, fields: Credentials, secret: string): Credentials {
  const secrets = secretFields(kind);
  const opened: Credentials = secrets.length === 1 ? { [secrets[0]!]: secret } : JSON.parse(secret);
  return { ...fields, ...opened };
}

export function secretFields(kind: AdapterKind): string[] {
  return kind.fields.filter(({ secret }) => secret).map(({ key }) => key);
}

/** The adapter for the zone of a stored credential. Its secrets are opened here alone. */
export function openAdapter(
  { sealer, env }: Pick<Runtime, 'sealer' | 'env'>,
  { id, provider, zone, settings, secret }: Pick<DnsCredentialRow, 'id' | 'provider' | 'zone' | 'settings' | 'secret'>,
): DnsAdapter {
  const kind = adapterKind(provider);
  if (!kind) throw new Error(`no adapter for the DNS provider ${provider}`);
  const opened = sealer.open(secret, dnsSecretPlace(id)).toString();
  const credentials = joinCredentials(kind, settings.fields, opened);
  return kind.open({ zone, credentials, allow: env.outboundAllow });
}
