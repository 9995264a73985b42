// What the nodes say of an origin, in words.
import type { Output } from '@contract/procedure.ts';
import type { originHealth } from '@contract/resources/origin-health.ts';
import { formatDuration, formatTime } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';
import type { NodeResult } from '@/shared/nodes/NodeList.vue';
import type { Tone } from '@/shared/state/tone.ts';

export type OriginHealth = Output<typeof originHealth.originHealth>['items'][number];
type Entry = OriginHealth['nodes'][number];
type Failure = Pick<Entry, 'lastErrorCode' | 'lastErrorParams'>;

/** The origin on all nodes together. */
export function originState({ downNodes, onlineNodes }: OriginHealth): { tone: Tone; state: string } {
  const { t } = i18n.global;
  if (onlineNodes === 0) return { tone: 'grey', state: t('sites.health.unknown') };
  if (downNodes === 0) return { tone: 'green', state: t('sites.health.up') };
  if (downNodes === onlineNodes) return { tone: 'red', state: t('sites.health.down') };
  return { tone: 'amber', state: t('sites.health.some', { count: downNodes, total: onlineNodes }) };
}

/** Why an origin fails; "" where nothing is known. */
export function failureText({ lastErrorCode, lastErrorParams }: Failure): string {
  const { t } = i18n.global;
  if (lastErrorCode === null) return '';
  if (lastErrorCode === 'upstream_status' && lastErrorParams.status === undefined) return t('sites.health.badStatus');
  return t(`sites.health.error.${lastErrorCode}`, { ...lastErrorParams });
}

/** The origin on each node, in the order of the entries. */
export function nodeResults({ nodes }: OriginHealth, checked: boolean): NodeResult[] {
  const { t } = i18n.global;
  const byNode = new Map<string, Entry[]>();
  for (const entry of nodes) byNode.set(entry.nodeId, [...(byNode.get(entry.nodeId) ?? []), entry]);
  return [...byNode.values()].map((entries) => {
    const { nodeId: id, nodeName: name } = entries[0]!;
    const reasons = entries.flatMap(reasonOf);
    if (checked && entries.every(({ source }) => source === 'passive')) reasons.push(t('sites.health.unable'));
    const isDown = entries.some(({ healthy }) => !healthy);
    const fails = entries.some(({ consecutiveFailures }) => consecutiveFailures > 0);
    const tone = isDown ? 'red' : fails ? 'amber' : 'green';
    const state = t(`sites.health.${isDown ? 'down' : fails ? 'failing' : 'up'}`);
    return { id, name, tone, state, reason: reasons.join(' · ') || undefined };
  });
}

function reasonOf(entry: Entry): string[] {
  const { t } = i18n.global;
  const { source, consecutiveFailures, downSince, checkIntervalSeconds } = entry;
  const words = { source: t(`sites.health.source.${source}`), error: failureText(entry) };
  const stretched =
    checkIntervalSeconds === null
      ? []
      : [t('sites.health.stretched', { interval: formatDuration(checkIntervalSeconds * 1000) })];
  if (consecutiveFailures === 0 && downSince === null) return stretched;
  const since = downSince === null ? '' : formatTime(downSince);
  return [t(since ? 'sites.health.downSince' : 'sites.health.failed', { ...words, since }), ...stretched];
}
