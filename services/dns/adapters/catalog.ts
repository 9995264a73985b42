// Adapters that exist.
import { DNS_ADAPTERS } from '../../gen/dns-adapters.ts';
import type { AdapterKind } from './adapter.ts';

const KINDS: ReadonlyMap<string, AdapterKind> = new Map(
  (DNS_ADAPTERS as readonly AdapterKind[]).map((kind) => [kind.key, kind]),
);

/** By key. */
export function adapterKinds(): AdapterKind[] {
  return [...KINDS.values()].sort((one, other) => (one.key < other.key ? -1 : 1));
}

export function adapterKind(key: string): AdapterKind | undefined {
  return KINDS.get(key);
}
