// What needs somebody, as one list: each kind's facts put into the item of the specification.
import {
  ATTENTION_KINDS,
  type AttentionItem,
  type AttentionKind,
  MAX_ATTENTION,
} from '../../contract/resources/overview.ts';
import { LEVELS } from '../../contract/scalars/challenge.ts';
import type { AboveNormal } from '../../models/overview.ts';
import type { NodeGroup } from '../../models/overview-nodes.ts';

export interface AttentionFacts {
  groups: readonly NodeGroup[];
  aboveNormal: readonly AboveNormal[];
  underAttack: boolean;
  sitesUnderAttack: number;
  waiting: { count: number; at: Date | null };
  /** What the check of the node channel found; null where it need not be asked. */
  channel: 'ok' | 'unreachable' | 'mismatch' | 'refused' | null;
}

const NOTHING = {
  clusterId: null,
  clusterName: '',
  revision: null,
  at: null,
  count: 0,
  version: '',
  named: [],
  problem: null,
} satisfies Omit<AttentionItem, 'kind' | 'level'>;

/** Words that a node leaves by itself or with a newer version: to watch, not to act on. */
const WATCHED: ReadonlySet<AttentionKind> = new Set([
  'nodes_lagging',
  'under_attack_on',
  'sites_under_attack',
  'nodes_bans_unapplied',
]);

/** The first items in the order of kinds, and how many there are. */
export function attentionList(facts: AttentionFacts): { items: AttentionItem[]; total: number } {
  const found: AttentionItem[] = [
    ...facts.groups.map(nodeItem),
    ...facts.aboveNormal.map(siteItem),
    ...(facts.underAttack ? [item('under_attack_on')] : []),
    ...(facts.sitesUnderAttack > 0 ? [item('sites_under_attack', { count: facts.sitesUnderAttack })] : []),
    ...(facts.waiting.count > 0
      ? [item('publications_waiting', { count: facts.waiting.count, at: facts.waiting.at?.toISOString() ?? null })]
      : []),
    ...(facts.channel !== null && facts.channel !== 'ok' ? [item('node_channel', { problem: facts.channel })] : []),
  ];
  const place = new Map(ATTENTION_KINDS.map((kind, index) => [kind, index]));
  found.sort((a, b) => place.get(a.kind)! - place.get(b.kind)!);
  return { items: found.slice(0, MAX_ATTENTION), total: found.length };
}

function item(kind: AttentionKind, facts: Partial<AttentionItem> = {}): AttentionItem {
  return { ...NOTHING, kind, level: WATCHED.has(kind) ? 'watch' : 'act', ...facts };
}

function nodeItem({ kind, clusterId, clusterName, revision, at, count, named }: NodeGroup): AttentionItem {
  return item(kind, {
    clusterId,
    clusterName,
    revision: kind === 'nodes_lagging' ? revision : null,
    at: at?.toISOString() ?? null,
    count,
    named: named.map((node) => ({ type: 'node' as const, ...node })),
  });
}

function siteItem({ clusterId, clusterName, count, level, since, named }: AboveNormal): AttentionItem {
  return item('sites_above_normal', {
    // Challenges do their work; a captcha is the last there is.
    level: LEVELS[level] === 'captcha' ? 'act' : 'watch',
    clusterId,
    clusterName,
    at: since.toISOString(),
    count,
    named: named.map(({ id, name, level: own }) => ({ type: 'site' as const, id, name, reason: LEVELS[own]! })),
  });
}
