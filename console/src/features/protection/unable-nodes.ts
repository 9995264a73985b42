// Nodes that keep what they run when they are told to challenge, because they lack the capability for it.
import { nodes } from '@contract/resources/nodes.ts';
import { call } from '@/shared/api/call.ts';
import { formatList } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';

const CAPABILITY = 'challenge-v1';
const NAMED = 3;

export interface Nodes {
  /** Active ones. */
  total: number;
  /** Names of those that cannot, the first of them. */
  unable: string[];
}

/** Active nodes of a cluster, or of all without one. */
export async function readNodes(clusterId: string | null, signal: AbortSignal): Promise<Nodes> {
  const active = { status: 'active' as const, ...(clusterId === null ? {} : { clusterId }) };
  const [{ total }, { items }] = await Promise.all([
    call(nodes.list, { ...active, pageSize: 1 }, { signal }),
    call(nodes.list, { ...active, lacks: CAPABILITY, pageSize: NAMED + 1 }, { signal }),
  ]);
  return { total, unable: items.map(({ name }) => name) };
}

/** A warning that names some of them, and says that there are more; none where all can. */
export function unableWarnings(names: readonly string[]): string[] {
  if (names.length === 0) return [];
  const { t } = i18n.global;
  if (names.length <= NAMED) return [t('protection.attack.cannot', { names: formatList(names) })];
  return [t('protection.attack.cannotMore', { names: names.slice(0, NAMED).join(', ') })];
}
