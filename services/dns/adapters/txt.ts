// Validation records of DNS-01 through any adapter: single TXT values beside which others stay.
import { AdapterError, type Change, type DnsAdapter, type TxtAdapter } from './adapter.ts';

/** Seconds. */
export const TXT_TTL = 60;

export function txtOf(adapter: DnsAdapter): TxtAdapter {
  return (
    adapter.txt ?? {
      add: ({ name, value }, signal) =>
        one(adapter, { action: 'append', name, type: 'TXT', ttl: TXT_TTL, values: [value] }, signal),
      remove: ({ name, value }, signal) =>
        one(adapter, { action: 'delete', name, type: 'TXT', values: [value] }, signal),
    }
  );
}

async function one(adapter: DnsAdapter, change: Change, signal: AbortSignal): Promise<void> {
  const [result] = await adapter.apply([change], { signal });
  if (!result) throw new AdapterError('unavailable', 'no result');
  if (result.state !== 'done') throw result.error;
}
