// How a rollout reads: its state in a word, what was found in a sentence, shares as percent.
import type { Output } from '@contract/procedure.ts';
import type { Finding, Rollout, rollout } from '@contract/resources/rollout.ts';
import { formatNumber, hasMessage } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';
import { placeOf } from '@/shared/page/places.ts';
import type { Tone } from '@/shared/state/tone.ts';

export type { Finding, Rollout };
export type RolloutEvent = Output<typeof rollout.rolloutEvents>['items'][number];

/** `off`: nothing is tried, and nothing will be. */
export type RolloutWord = Rollout['state'] | 'off';

const STATE_TONES: Readonly<Record<RolloutWord, Tone>> = {
  off: 'grey',
  idle: 'green',
  canary: 'blue',
  awaiting_promotion: 'amber',
  promoted: 'green',
  rolled_back: 'red',
  direct: 'amber',
};
const EVENT_TONES: Readonly<Record<RolloutEvent['kind'], Tone>> = {
  started: 'blue',
  promoted: 'green',
  rolled_back: 'red',
  direct: 'amber',
  undone: 'red',
  undo_stopped: 'red',
};

/** The word is `rollouts.state.<word>`. */
export function rolloutState({ policy, candidateRevision, state }: Rollout): { word: RolloutWord; tone: Tone } {
  const word = !policy.enabled && candidateRevision === null ? 'off' : state;
  return { word, tone: STATE_TONES[word] };
}

export const eventTone = ({ kind }: Pick<RolloutEvent, 'kind'>): Tone => EVENT_TONES[kind];

/** 0.0512 as 5.1 %; what is small and not nothing keeps its digits. */
export function percentText(ratio: number): string {
  const maximumFractionDigits = ratio < 0.01 ? 2 : 1;
  return formatNumber(ratio, { style: 'percent', maximumFractionDigits });
}

/** 5xx answers among requests; empty without any. */
export function shareText(errors: number, requests: number): string {
  return requests === 0 ? '' : percentText(errors / requests);
}

/** What moved, in words: 5xx answers of origins, or an answer that nodes made themselves. */
export function figureText(figure: string): string {
  const { t } = i18n.global;
  if (figure === 'origin_5xx' || figure === 'edge_5xx') return t(`rollouts.figure.${figure}`);
  return t('rollouts.figure.edge', { code: figure.replace(/^edge_/, '') });
}

/** What was found, in a sentence. */
export function findingText({ reason, figure, siteName, before, baseline, now }: Finding): string {
  const { t } = i18n.global;
  if (figure === null || now === null) return t(`rollouts.finding.${reason}`);
  const words = { figure: figureText(figure), site: siteName ?? '', now: percentText(now) };
  const from = before ?? baseline;
  const of = siteName === null ? 'all' : 'site';
  if (from === null) return t(`rollouts.moved.now.${of}`, words);
  return t(`rollouts.moved.${before === null ? 'beside' : 'from'}.${of}`, { ...words, from: percentText(from) });
}

/** Why a revision was made, in words. */
export function reasonText(code: string): string {
  return hasMessage(`contract.reason.${code}`) ? i18n.global.t(`contract.reason.${code}`) : code;
}

/** Who did it; the console by itself has no name. */
export function whoText({ type, name }: RolloutEvent['actor']): string {
  return type === 'system' ? i18n.global.t('rollouts.byItself') : name || type;
}

/** Where a revision is read, with what it changed. */
export function revisionPlace(clusterId: string, revision: string): string {
  return `${placeOf('cluster', clusterId, 'revisions') ?? '/clusters'}?revision=${revision}`;
}

export function eventPlace({ clusterId, id }: Pick<RolloutEvent, 'clusterId' | 'id'>): string {
  return `/rollouts/${clusterId}/events/${id}`;
}
