// Validation records through the adapter of a credential, with failures as certificates tell them.
import type { DnsCredentialRow } from '../../../../models/certificates/dns-credential.ts';
import type { Runtime } from '../../../../runtime/runtime.ts';
import { AdapterError, type DnsAdapter } from '../../../dns/adapters/adapter.ts';
import { openAdapter } from '../../../dns/adapters/stored.ts';
import { txtOf } from '../../../dns/adapters/txt.ts';
import { DnsFailed, type DnsFailure, type DnsProvider } from './provider.ts';

const FAILURES: Readonly<Record<AdapterError['kind'], DnsFailure>> = {
  denied: 'dns_unauthorized',
  not_found: 'dns_zone_not_found',
  rate_limited: 'dns_failed',
  invalid: 'dns_refused',
  conflict: 'dns_refused',
  unavailable: 'dns_failed',
  timeout: 'dns_failed',
  address_refused: 'dns_address_refused',
  unsupported: 'dns_refused',
};

/** What writes records with the credential. */
export function openProvider(runtime: Pick<Runtime, 'sealer' | 'env'>, credential: DnsCredentialRow): DnsProvider {
  return providerOf(openAdapter(runtime, credential));
}

export function providerOf(adapter: DnsAdapter): DnsProvider {
  const texts = txtOf(adapter);
  return {
    add: (record, signal) => telling(texts.add(record, signal)),
    remove: (record, signal) => telling(texts.remove(record, signal)),
  };
}

async function telling(change: Promise<void>): Promise<void> {
  try {
    await change;
  } catch (error) {
    if (!(error instanceof AdapterError)) throw error;
    throw new DnsFailed(error.unreachable ? 'dns_unreachable' : FAILURES[error.kind], error);
  }
}
