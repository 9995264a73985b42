// What needs somebody, in words and with the place to look at it.
import { ATTENTION } from '@contract/resources/overview.ts';
import { formatNumber } from '@/shared/i18n/format.ts';
import { i18n, loadMessages } from '@/shared/i18n/i18n.ts';
import { placeOf } from '@/shared/page/places.ts';
import type { Tone } from '@/shared/state/tone.ts';
import type { AttentionItem } from './use-overview.ts';

/** Pages that show one cluster alone where the address names it. */
const OF_CLUSTER = new Set(['/nodes', '/sites', '/rollouts']);

export const loadAttentionWords = (): Promise<void> => loadMessages(['attention']);

export function attentionTone({ level }: Pick<AttentionItem, 'level'>): Tone {
  return level === 'act' ? 'red' : 'amber';
}

export function attentionKey({ kind, clusterId, named }: AttentionItem): string {
  return kind === 'site_failing' ? `${kind} ${named[0]?.id}` : `${kind} ${clusterId ?? ''}`;
}

export function attentionTitle({ kind, count, clusterName, problem, percent, named }: AttentionItem): string {
  const { t } = i18n.global;
  const facts = {
    count: formatNumber(count),
    cluster: clusterName,
    name: named[0]?.name ?? '',
    percent: formatNumber(percent ?? 0),
    problem: problem === null ? '' : t(`attention.problem.${problem}`),
  };
  return t(`attention.kind.${kind}`, facts, count);
}

/** One line: the thing itself where there is one, else how many. */
export function attentionLine(item: AttentionItem): string {
  const [only] = item.named;
  if (item.count !== 1 || !only || only.reason === null || only.reason === 'ok') return attentionTitle(item);
  return i18n.global.t('attention.one', { name: only.name, word: wordOf(only.reason) });
}

export function wordOf(reason: NonNullable<AttentionItem['named'][number]['reason']>): string {
  return i18n.global.t(`attention.word.${reason}`);
}

/** Where one that is named by an item of the kind is looked at. */
export function namedPlace({ type, id, reason }: AttentionItem['named'][number], kind: AttentionItem['kind']): string {
  return placeOf(type, id, type === 'site' && reason !== 'unserved' ? sitePart(kind) : undefined) ?? '/overview';
}

function sitePart(kind: AttentionItem['kind']): string {
  if (kind === 'site_failing' || kind === 'origins_down') return 'origins';
  return kind === 'certificates_ending' ? 'https' : 'security';
}

/** Where the change is seen after which a site began to fail, and can be undone; null: there is none. */
export function changePlace({ kind, clusterId, revision }: AttentionItem): string | null {
  if (kind !== 'site_failing' || clusterId === null || revision === null) return null;
  return placeOf('cluster', clusterId, `revisions?revision=${revision}`);
}

/** Where all of it is seen: the thing itself where there is one. */
export function attentionPlace(item: AttentionItem): string {
  const [only] = item.named;
  if (item.count === 1 && only) return namedPlace(only, item.kind);
  const { page } = ATTENTION[item.kind];
  if (item.clusterId === null) return page;
  // Pages of which one cluster alone can be seen.
  const [path, query] = page.split('?');
  if (path === '/clusters') return placeOf('cluster', item.clusterId) ?? page;
  if (OF_CLUSTER.has(path!)) return `${path}?${query ? `${query}&` : ''}clusterId=${item.clusterId}`;
  return page;
}
