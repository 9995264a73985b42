import { type DnsCredentialRow, dnsSecretPlace } from '../../../../models/certificates/dns-credential.ts';
import type { Runtime } from '../../../../runtime/runtime.ts';
import type { DnsProvider } from '../../../dns/adapters/dns-failed.ts';
import { rfc2136Provider } from '../../../dns/adapters/rfc2136/update.ts';
import { parseServerAddress } from '../../../dns/adapters/server-address.ts';
import { webhookProvider } from '../../../dns/adapters/webhook/present.ts';

/** What writes records with the credential. */
export function openProvider(
  { sealer, env }: Pick<Runtime, 'sealer' | 'env'>,
  { id, provider, zone, settings, secret }: DnsCredentialRow,
): DnsProvider {
  const allow = env.outboundAllow;
  const opened = sealer.open(secret, dnsSecretPlace(id)).toString();
  if (provider === 'webhook') return webhookProvider({ url: settings.url!, zone, secret: Buffer.from(opened), allow });
  const key = {
    name: settings.keyName!,
    algorithm: settings.algorithm!,
    secret: Buffer.from(opened, 'base64'),
  };
  return rfc2136Provider({ server: parseServerAddress(settings.server!)!, zone, key, allow });
}
