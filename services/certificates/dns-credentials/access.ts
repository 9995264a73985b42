// How a zone is reached, as people give it: what belongs to its provider, checked; nothing of the other's.
import { badField } from '../../../contract/errors.ts';
import type { Input } from '../../../contract/procedure.ts';
import { type dnsCredentials, MIN_DNS_SECRET } from '../../../contract/resources/dns-credentials.ts';
import type { DnsAccess } from '../../../models/certificates/dns-credential.ts';
import { recordName } from '../../dns/adapters/names.ts';
import { parseServerAddress } from '../../dns/adapters/server-address.ts';
import { serverUrl } from '../../dns/adapters/server-url.ts';

type Given = Pick<
  Input<typeof dnsCredentials.create>,
  'url' | 'server' | 'keyName' | 'algorithm' | 'nameservers' | 'secret'
>;

/** Throws BAD_REQUEST. */
export function accessOf(provider: string, given: Omit<Given, 'secret'>, before: DnsAccess | null = null): DnsAccess {
  const { url, server, keyName, algorithm, nameservers = [] } = given;
  for (const [index, text] of nameservers.entries()) {
    if (parseServerAddress(text.trim()) === null) badField(`/nameservers/${index}`, 'server');
  }
  const common = { nameservers: nameservers.map((text) => text.trim()) };
  if (provider === 'webhook') {
    assertAbsent({ server, keyName, algorithm }, provider);
    return { ...common, fields: { url: webhookUrl(url ?? badField('/url', 'required')) } };
  }
  assertAbsent({ url }, provider);
  if (provider !== 'rfc2136') {
    // Providers of the catalogue have their fields at their own resource.
    assertAbsent({ server, keyName, algorithm }, provider);
    return { ...common, fields: before?.fields ?? {} };
  }
  const address = (server ?? badField('/server', 'required')).trim();
  if (parseServerAddress(address) === null) badField('/server', 'server');
  const key = recordName(keyName ?? badField('/keyName', 'required')) ?? badField('/keyName', 'dnsName');
  const fields = { server: address, tsig_key_name: key, tsig_algorithm: algorithm ?? 'hmac-sha256' };
  return { ...common, fields };
}

/** Throws BAD_REQUEST. */
export function assertSecret(provider: string, secret: string): void {
  if (provider === 'webhook') return;
  if (provider !== 'rfc2136') badField('/secret', 'notOfProvider', { provider });
  const key = Buffer.from(secret, 'base64');
  if (key.toString('base64').replace(/=+$/, '') !== secret.replace(/=+$/, '')) badField('/secret', 'base64');
  if (key.length < MIN_DNS_SECRET) badField('/secret', 'tooShort', { bytes: MIN_DNS_SECRET });
}

function assertAbsent(given: Record<string, unknown>, provider: string): void {
  for (const [field, value] of Object.entries(given)) {
    if (value !== undefined) badField(`/${field}`, 'notOfProvider', { provider });
  }
}

function webhookUrl(text: string): string {
  const url = serverUrl(text) ?? badField('/url', 'url');
  return url === 'insecure' ? badField('/url', 'https') : url.href;
}
