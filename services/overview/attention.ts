// What needs somebody, as one list: each kind's facts put into the item of the specification.
import {
  ATTENTION,
  ATTENTION_KINDS,
  type AttentionItem,
  isSpecifiedAttention,
  MAX_ATTENTION,
} from '../../contract/resources/overview.ts';
import type { FoundAttention } from '../../mixins/attention.ts';

export interface AttentionFacts {
  /** What the check of the node channel found; null where it need not be asked. */
  channel: 'ok' | 'unreachable' | 'mismatch' | 'refused' | null;
  /** What services found in what is theirs. */
  found: readonly FoundAttention[];
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
  percent: null,
} satisfies Omit<AttentionItem, 'kind' | 'level'>;

/** The items in the order of kinds, those of the specification without a limit; and how many there are. */
export function attentionList({ channel, found }: AttentionFacts): { items: AttentionItem[]; total: number } {
  const all: FoundAttention[] = [
    ...found,
    ...(channel !== null && channel !== 'ok' ? [{ kind: 'node_channel', problem: channel } as const] : []),
  ];
  const place = new Map(ATTENTION_KINDS.map((kind, index) => [kind, index]));
  const items = all.map(
    ({ subjects: _, ...one }): AttentionItem => ({ ...NOTHING, level: ATTENTION[one.kind].level, ...one }),
  );
  items.sort((a, b) => place.get(a.kind)! - place.get(b.kind)!);
  const specified = items.filter(({ kind }) => isSpecifiedAttention(kind));
  const others = items.slice(specified.length);
  return { items: [...specified, ...others.slice(0, MAX_ATTENTION)], total: items.length };
}
