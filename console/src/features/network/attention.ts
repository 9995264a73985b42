// Nodes that need somebody: refused by the node channel, away, unwell or without room for a ban.
import { nodes } from '@contract/resources/nodes.ts';
import type { AttentionItem } from '@/app/feature.ts';
import { call } from '@/shared/api/call.ts';
import { i18n, loadMessages } from '@/shared/i18n/i18n.ts';
import { nodeState, revisionState } from './node-state.ts';

const MOST = 20;

export async function attention(): Promise<AttentionItem[]> {
  const [{ items }] = await Promise.all([
    call(nodes.list, { status: 'active', pageSize: 100 }),
    loadMessages(['network']),
  ]);
  const { t } = i18n.global;
  return items
    .flatMap((node) => {
      const [machine, revision] = [nodeState(node), revisionState(node)];
      const asks = [machine, revision].find(({ tone }) => tone === 'red' || tone === 'amber');
      if (!asks) return [];
      const state = asks === machine ? t(`network.state.${machine.key}`) : t(`network.revision.${revision.key}`);
      return [
        {
          key: `node:${node.id}`,
          level: asks.tone === 'red' ? ('act' as const) : ('watch' as const),
          text: t('network.attention.node', { name: node.name, state }),
          to: `/nodes/${node.id}`,
        },
      ];
    })
    .slice(0, MOST);
}
