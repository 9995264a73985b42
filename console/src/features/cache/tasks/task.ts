// Cache tasks as pages show them, and what the dialog sends of what was typed.
import type { Input, Output } from '@contract/procedure.ts';
import { CACHE_TASK_TYPES, type CACHE_VARIANTS, type cacheTasks } from '@contract/resources/cache-tasks.ts';
import { hasMessage } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';
import type { NodeResult } from '@/shared/nodes/NodeList.vue';
import type { Tone } from '@/shared/state/tone.ts';

export type Task = Output<typeof cacheTasks.get>;
export type TaskType = Task['type'];
type TaskNode = Task['nodes'][number];
type Variant = (typeof CACHE_VARIANTS)[number];

/** In the order of the dialog; types that this list does not know come last. */
const FIRST: readonly TaskType[] = ['url', 'prefix', 'tag', 'host', 'site', 'prefetch', 'sitemap'];
export const TASK_TYPES: readonly TaskType[] = [...new Set([...FIRST, ...CACHE_TASK_TYPES])];

/** The field that holds what a task is about. */
export const TARGET_FIELD = {
  url: 'urls',
  prefix: 'urls',
  prefetch: 'urls',
  sitemap: 'urls',
  host: 'hosts',
  tag: 'tags',
  site: null,
} as const satisfies Record<TaskType, string | null>;

export const ofSite = (type: TaskType) => type === 'site' || type === 'tag';
export const isPrefetch = (type: TaskType) => type === 'prefetch' || type === 'sitemap';

const DONE: readonly TaskNode['state'][] = ['succeeded', 'failed', 'skipped'];
const TASK_TONES: Readonly<Record<Task['state'], Tone>> = {
  pending: 'blue',
  running: 'blue',
  succeeded: 'green',
  failed: 'red',
};
const NODE_TONES: Readonly<Record<TaskNode['state'], Tone>> = { ...TASK_TONES, skipped: 'grey' };

export const taskTone = ({ state }: Pick<Task, 'state'>): Tone => TASK_TONES[state];
export const finishedNodes = ({ nodes }: Pick<Task, 'nodes'>): number =>
  nodes.filter(({ state }) => DONE.includes(state)).length;
export const lackingNodes = ({ nodes }: Pick<Task, 'nodes'>): number =>
  nodes.filter(({ errorCode }) => errorCode === 'task_unsupported').length;

const SHOWN = 3;

/** The first targets, and how many more there are. */
export function targetTexts({ targets }: Pick<Task, 'targets'>): string[] {
  const more = targets.length - SHOWN;
  const first = targets.slice(0, SHOWN);
  return more > 0 ? [...first, i18n.global.t('cache.tasks.moreTargets', { count: more })] : first;
}

/** Nodes with what happened at each, those with a problem first. */
export function nodeResults({ type, nodes }: Pick<Task, 'type' | 'nodes'>): NodeResult[] {
  const { t } = i18n.global;
  return nodes
    .toSorted((a, b) => Number(b.state === 'failed') - Number(a.state === 'failed'))
    .map((node) => ({
      id: node.nodeId,
      name: node.nodeName,
      tone: NODE_TONES[node.state],
      state: t(`cache.tasks.node.${node.state}`),
      reason: [countsText(type, node), reasonText(type, node)].filter((text) => text !== '').join(' '),
    }));
}

function countsText(type: TaskType, { succeeded, failed }: TaskNode): string {
  if (!isPrefetch(type) || succeeded + failed === 0) return '';
  return i18n.global.t('cache.tasks.fetched', { succeeded, failed });
}

function reasonText(type: TaskType, { errorCode, errorParams, message, recoveredAt }: TaskNode): string {
  if (recoveredAt) return i18n.global.t('cache.tasks.recovered');
  // Purges are made up for; what was not fetched is not.
  const own = `cache.tasks.${isPrefetch(type) ? 'prefetchFault' : 'purgeFault'}.${errorCode}`;
  const key = hasMessage(own) ? own : `cache.tasks.fault.${errorCode}`;
  return errorCode !== null && hasMessage(key) ? i18n.global.t(key, wordsOf(errorParams)) : message;
}

/** The parameters of a failure with its reason in words. */
function wordsOf({ reason = 'other', ...params }: TaskNode['errorParams']): Record<string, unknown> {
  const key = `cache.tasks.reason.${reason}`;
  return { ...params, reason: i18n.global.t(hasMessage(key) ? key : 'cache.tasks.reason.other', params) };
}

/** What the dialog holds. */
export interface GivenTask {
  type: TaskType;
  siteId: string;
  lines: string[];
  variants: Variant[];
  maxUrls: number | string;
}

/** What is sent of it: the fields of its type. */
export function inputOf({ type, siteId, lines, variants, maxUrls }: GivenTask): Input<typeof cacheTasks.create> {
  const field = TARGET_FIELD[type];
  return {
    type,
    ...(ofSite(type) ? { siteIds: siteId === '' ? [] : [siteId] } : {}),
    ...(field === null ? {} : { [field]: lines }),
    ...(isPrefetch(type) ? { variants } : {}),
    ...(type === 'sitemap' && maxUrls !== '' ? { maxUrls: maxUrls as number } : {}),
  };
}
