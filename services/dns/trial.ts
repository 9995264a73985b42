// Asking a provider with an access that is stored or not: its zones, and whether it can be read.

import type { ErrorCode } from '../../contract/errors.ts';
import { badField, fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { dns } from '../../contract/resources/dns.ts';
import { normaliseHostName } from '../../contract/scalars/host-name.ts';
import { dnsCredentialById, setDnsCredentialError } from '../../models/certificates/dns-credential.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { AdapterError, type AdapterErrorKind, type AdapterKind, type DnsAdapter } from './adapters/adapter.ts';
import { checkCredentials, openAdapter } from './adapters/stored.ts';
import { kindOf } from './kind-of.ts';

/** Below the time that a call may take. */
const ASK_MS = 8_000;

export const PROVIDER_CODES: Readonly<Record<AdapterErrorKind, ErrorCode>> = {
  denied: 'DNS_PROVIDER_AUTH_FAILED',
  not_found: 'DNS_PROVIDER_ZONE_NOT_FOUND',
  rate_limited: 'DNS_PROVIDER_RATE_LIMITED',
  invalid: 'DNS_PROVIDER_FAILED',
  conflict: 'DNS_PROVIDER_FAILED',
  unavailable: 'DNS_PROVIDER_UNREACHABLE',
  timeout: 'DNS_PROVIDER_UNREACHABLE',
  address_refused: 'DNS_ADDRESS_REFUSED',
  unsupported: 'DNS_ZONES_UNSUPPORTED',
};

/** Throws DNS_PROVIDER_NOT_FOUND, DNS_ZONES_UNSUPPORTED and those of the provider. */
export async function listZones(runtime: Runtime, input: Input<typeof dns.zones>): Promise<Output<typeof dns.zones>> {
  const { kind, open } = await opened(runtime, input);
  if (!kind.capabilities.listZones) fail('DNS_ZONES_UNSUPPORTED');
  const zones = await asked((signal) => open('').zones({ signal }));
  return { zones: zones.sort().slice(0, 10_000) };
}

/** Throws DNS_PROVIDER_NOT_FOUND and those of the provider. */
export async function testAccess(runtime: Runtime, input: Input<typeof dns.test>): Promise<Output<typeof dns.test>> {
  const { stored, open } = await opened(runtime, input);
  const zone = stored?.zone ?? normaliseHostName((input.zone ?? badField('/zone', 'required')).trim());
  if (zone === null) return badField('/zone', 'dnsName');
  try {
    const { records } = await asked((signal) => open(zone).test({ signal }));
    if (stored) await setDnsCredentialError(runtime.pools.api, stored.id, null);
    return { ok: true, records };
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    if (stored && typeof code === 'string') await setDnsCredentialError(runtime.pools.api, stored.id, code);
    throw error;
  }
}

interface Opened {
  kind: AdapterKind;
  stored: { id: string; zone: string } | null;
  open(zone: string): DnsAdapter;
}

async function opened(
  runtime: Runtime,
  { id, provider, credentials }: Pick<Input<typeof dns.test>, 'id' | 'provider' | 'credentials'>,
): Promise<Opened> {
  const allow = runtime.env.outboundAllow;
  if (id !== undefined) {
    if (provider !== undefined) badField('/provider', 'notWithId');
    if (credentials !== undefined) badField('/credentials', 'notWithId');
    const row = (await dnsCredentialById(runtime.pools.api, id)) ?? fail('DNS_PROVIDER_NOT_FOUND');
    const kind = kindOf(row.provider);
    return { kind, stored: row, open: () => openAdapter(runtime, row) };
  }
  const kind = kindOf(provider ?? badField('/provider', 'required'));
  const checked = checkCredentials(kind, credentials ?? badField('/credentials', 'required'));
  return { kind, stored: null, open: (zone) => kind.open({ zone, credentials: checked, allow }) };
}

async function asked<T>(ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const signal = AbortSignal.timeout(ASK_MS);
  try {
    return await ask(signal);
  } catch (error) {
    if (error instanceof AdapterError) {
      const { kind, detail, retryAfter } = error;
      const more = kind === 'rate_limited' && retryAfter !== null ? { retryAfterSeconds: retryAfter } : {};
      fail(PROVIDER_CODES[kind], { ...(detail === '' ? {} : { detail }), ...more }, error);
    }
    if (signal.aborted) fail('DNS_PROVIDER_UNREACHABLE', {}, error);
    throw error;
  }
}
