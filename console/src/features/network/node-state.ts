// What a node's state is called: one word for the machine, one for its configuration.
import type { Output } from '@contract/procedure.ts';
import type { nodes } from '@contract/resources/nodes.ts';
import type { Tone } from '@/shared/state/tone.ts';

export type Node = Output<typeof nodes.get>;
export type NodeStateKey =
  | 'disabled'
  | 'awaiting'
  | 'refused'
  | 'overBudget'
  | 'expired'
  | 'offline'
  | 'unhealthy'
  | 'online';
export type RevisionStateKey = 'upgrade' | 'awaiting' | 'failed' | 'behind' | 'sync';
export interface Word<K extends string = string> {
  tone: Tone;
  key: K;
}

const DAY_MS = 86_400_000;
/** A certificate that ends sooner than this should have been renewed. */
const SOON_DAYS = 10;
const WARN_PERCENT = 75;
const ERROR_PERCENT = 90;

/** Its calls are refused, its certificate is not. */
export function isOverBudget({ authError }: Node): boolean {
  return authError?.startsWith('OVER_BUDGET_') ?? false;
}

export function nodeState(node: Node, now: number): Word<NodeStateKey> {
  if (node.status === 'disabled') return { tone: 'grey', key: 'disabled' };
  if (isOverBudget(node)) return { tone: 'amber', key: 'overBudget' };
  if (node.authError !== null) return { tone: 'red', key: 'refused' };
  if (certificateState(node, now) === 'expired') return { tone: 'red', key: 'expired' };
  if (node.lastSeenAt === null) return { tone: 'blue', key: 'awaiting' };
  if (!node.online) return { tone: 'red', key: 'offline' };
  return node.dataPlaneHealthy ? { tone: 'green', key: 'online' } : { tone: 'red', key: 'unhealthy' };
}

export function revisionState(node: Node): Word<RevisionStateKey> {
  if (node.upgradeRequired) return { tone: 'amber', key: 'upgrade' };
  if (node.applyState === 'failed') return { tone: 'red', key: 'failed' };
  if (node.appliedRevision === null) return { tone: 'blue', key: 'awaiting' };
  if (BigInt(node.appliedRevision) < BigInt(node.targetRevision)) return { tone: 'blue', key: 'behind' };
  return { tone: 'green', key: 'sync' };
}

export function certificateState(node: Pick<Node, 'certNotAfter'>, now: number): 'none' | 'expired' | 'soon' | 'ok' {
  if (node.certNotAfter === null) return 'none';
  const left = new Date(node.certNotAfter).getTime() - now;
  if (left <= 0) return 'expired';
  return left < SOON_DAYS * DAY_MS ? 'soon' : 'ok';
}

/** How full something is, as a colour. */
export function gaugeTone(percent: number): Tone {
  if (percent >= ERROR_PERCENT) return 'red';
  return percent >= WARN_PERCENT ? 'amber' : 'green';
}

export function percentOf(used: number, total: number): number {
  return total > 0 ? Math.min(100, (used / total) * 100) : 0;
}

/** What the page of a node gives its parts. */
export interface NodePartProps {
  node: Node;
  reload: () => Promise<void>;
}
