// Results of nodes as the API returns them.
import type { CacheTask, CacheTaskNode } from '../../contract/resources/cache-tasks.ts';
import { PURGE_DAYS } from './purge.ts';

export type NamedNode = Readonly<Record<'id' | 'name', string>>;

export function resultOf(
  { id, name }: NamedNode,
  state: CacheTaskNode['state'],
  more: Partial<CacheTaskNode> = {},
): CacheTaskNode {
  return {
    nodeId: id,
    nodeName: name,
    state,
    message: '',
    errorCode: null,
    errorParams: {},
    succeeded: 0,
    failed: 0,
    finishedAt: null,
    recoveredAt: null,
    ...more,
  };
}

export function skipped(node: NamedNode): CacheTaskNode {
  return resultOf(node, 'skipped', { message: 'The node is disabled.', errorCode: 'node_disabled' });
}

export function expired(node: NamedNode, message: string): CacheTaskNode {
  return resultOf(node, 'failed', {
    message: `The node was away for ${PURGE_DAYS} days. ${message}`,
    errorCode: 'task_expired',
  });
}

export function unsupported(node: NamedNode, type: CacheTask['type']): CacheTaskNode {
  return resultOf(node, 'failed', {
    message: `The node cannot do tasks of type ${type}.`,
    errorCode: 'task_unsupported',
    errorParams: { type },
  });
}
