// How a zone is reached, as people give it: what belongs to its provider, checked; nothing of the other's.
import { isIP } from 'node:net';
import { badField } from '../../../contract/errors.ts';
import type { Input } from '../../../contract/procedure.ts';
import {
  type DnsProviderKind,
  type dnsCredentials,
  MIN_DNS_SECRET,
} from '../../../contract/resources/dns-credentials.ts';
import type { DnsAccess } from '../../../models/certificates/dns-credential.ts';
import { isAllowed } from '../../../proto/address-policy.ts';
import { PRIVATE_RANGES } from '../../../runtime/outbound.ts';
import { recordName } from '../../dns/adapters/names.ts';
import { parseServerAddress } from '../../dns/adapters/server-address.ts';

type Given = Pick<
  Input<typeof dnsCredentials.create>,
  'url' | 'server' | 'keyName' | 'algorithm' | 'nameservers' | 'secret'
>;

/** Throws BAD_REQUEST. */
export function accessOf(provider: DnsProviderKind, given: Omit<Given, 'secret'>): DnsAccess {
  const { url, server, keyName, algorithm, nameservers = [] } = given;
  for (const [index, text] of nameservers.entries()) {
    if (parseServerAddress(text.trim()) === null) badField(`/nameservers/${index}`, 'server');
  }
  const common = { nameservers: nameservers.map((text) => text.trim()) };
  if (provider === 'webhook') {
    assertAbsent({ server, keyName, algorithm }, provider);
    return {
      ...common,
      url: webhookUrl(url ?? badField('/url', 'required')),
      server: null,
      keyName: null,
      algorithm: null,
    };
  }
  assertAbsent({ url }, provider);
  const address = (server ?? badField('/server', 'required')).trim();
  if (parseServerAddress(address) === null) badField('/server', 'server');
  const key = recordName(keyName ?? badField('/keyName', 'required')) ?? badField('/keyName', 'dnsName');
  return { ...common, url: null, server: address, keyName: key, algorithm: algorithm ?? 'hmac-sha256' };
}

/** Throws BAD_REQUEST. */
export function assertSecret(provider: DnsProviderKind, secret: string): void {
  if (provider === 'webhook') return;
  const key = Buffer.from(secret, 'base64');
  if (key.toString('base64').replace(/=+$/, '') !== secret.replace(/=+$/, '')) badField('/secret', 'base64');
  if (key.length < MIN_DNS_SECRET) badField('/secret', 'tooShort', { bytes: MIN_DNS_SECRET });
}

function assertAbsent(given: Record<string, unknown>, provider: DnsProviderKind): void {
  for (const [field, value] of Object.entries(given)) {
    if (value !== undefined) badField(`/${field}`, 'notOfProvider', { provider });
  }
}

/** What is sent is signed but not secret; over the public network nobody may even read it. */
function webhookUrl(text: string): string {
  const url = URL.parse(text.trim()) ?? badField('/url', 'url');
  if (url.username !== '' || url.password !== '' || url.hash !== '') return badField('/url', 'url');
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const isPrivate = isIP(host) !== 0 && isAllowed(host, PRIVATE_RANGES);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isPrivate)) badField('/url', 'https');
  return url.href;
}
