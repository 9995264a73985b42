// Changes of a zone told to a server of one's own: one signed request for each.
import { createHmac } from 'node:crypto';
import { OutboundFailed, sendOutbound } from '../../../../runtime/outbound.ts';
import { CHANGE_MS, DnsFailed, type DnsFailure, type DnsProvider, TXT_TTL, type TxtRecord } from '../dns-failed.ts';

interface Receiver {
  url: string;
  zone: string;
  secret: Buffer;
  /** CIDRs of private networks in which it may be. */
  allow: readonly string[];
}

/** What it answers is not read. */
const MAX_BYTES = 65_536;
const CODES: Readonly<Record<number, DnsFailure>> = {
  401: 'dns_unauthorized',
  403: 'dns_unauthorized',
  404: 'dns_zone_not_found',
};

export function webhookProvider(receiver: Receiver): DnsProvider {
  return {
    add: (record, signal) => tell(receiver, 'present', record, signal),
    remove: (record, signal) => tell(receiver, 'cleanup', record, signal),
  };
}

async function tell(
  { url, zone, secret, allow }: Receiver,
  action: 'present' | 'cleanup',
  { name, value }: TxtRecord,
  signal: AbortSignal,
): Promise<void> {
  const body = JSON.stringify({ action, zone, name, type: 'TXT', value, ttl: TXT_TTL });
  const timestamp = String(Math.floor(Date.now() / 1000));
  const headers = {
    'content-type': 'application/json',
    'x-svc-timestamp': timestamp,
    'x-svc-signature': `v1=${createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex')}`,
  };
  const { status } = await sendOutbound({
    url: new URL(url),
    method: 'POST',
    headers,
    body,
    allow,
    timeoutMs: CHANGE_MS,
    maxBytes: MAX_BYTES,
    signal,
  }).catch((error: unknown) => {
    if (!(error instanceof OutboundFailed)) throw error;
    throw new DnsFailed(error.reason === 'refused' ? 'dns_address_refused' : 'dns_unreachable', error);
  });
  if (status >= 200 && status < 300) return;
  const passing = status >= 500 || status === 408 || status === 429;
  throw new DnsFailed(CODES[status] ?? (passing ? 'dns_failed' : 'dns_refused'));
}
