// Active nodes of a cluster without a capability, the first of them by name.
import type { Capability } from '@contract/capabilities.ts';
import type { Output } from '@contract/procedure.ts';
import { nodes } from '@contract/resources/nodes.ts';
import { call } from '@/shared/api/call.ts';
import { useLoad } from '@/shared/api/use-load.ts';
import { formatList } from '@/shared/i18n/format.ts';

const NAMED = 3;
type Found = Pick<Output<typeof nodes.list>, 'items' | 'total'>;

export function useLacking(clusterId: () => string, capability: () => Capability) {
  return useLoad(
    (signal) =>
      call(nodes.list, { clusterId: clusterId(), status: 'active', lacks: capability(), pageSize: NAMED }, { signal }),
    { live: ['nodes'] },
  );
}

/** The names, empty without such nodes, and how many there are beside them and in all. */
export function lackingNames(found: Found | undefined): { names: string; others: number; whole: number } {
  const { items = [], total = 0 } = found ?? {};
  return { names: formatList(items.map(({ name }) => name)), others: total - items.length, whole: total };
}
