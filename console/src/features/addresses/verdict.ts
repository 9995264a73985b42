// What a request meets, in words and colours.
import type { AddressDossier } from '@contract/resources/addresses.ts';
import { formatNumber } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';
import type { Tone } from '@/shared/state/tone.ts';

export type Verdict = Omit<AddressDossier['clusters'][number], 'clusterId' | 'clusterName'>;
export type AddressBan = AddressDossier['bans']['items'][number];
export type AddressSite = AddressDossier['sites'][number];
export type AddressList = AddressDossier['lists'][number];
export type AddressEvent = AddressDossier['events'][number];

export const TONES: Readonly<Record<Verdict['outcome'], Tone>> = {
  dropped: 'red',
  disabled: 'grey',
  banned: 'red',
  blocked: 'red',
  challenged: 'amber',
  passes: 'green',
};

/** The message that says of a ban what is banned where and until when. */
export function banKey({ scope }: NonNullable<Verdict['ban']>): string {
  return scope === 'site' ? 'addresses.why.siteBan' : 'addresses.why.platformBan';
}

/** Why, in one sentence; of a ban, what there is beside {@link banKey}. */
export function reasonText(verdict: Verdict): string {
  const { t } = i18n.global;
  const { outcome, ban, list, level, asks, kernelNodes, nodes, trustedProxy } = verdict;
  if (ban) {
    const counts = { nodes: formatNumber(nodes), kernel: formatNumber(kernelNodes) };
    return kernelNodes === 0 ? '' : t('addresses.why.kernel', counts, nodes);
  }
  if (outcome === 'disabled') return t('addresses.why.disabled');
  if (list) {
    const words = { name: list.name, entry: list.entry };
    return outcome === 'blocked' ? t('addresses.why.blocked', words) : t('addresses.why.allowed', words);
  }
  if (asks) {
    const words = { level: t(`protection.level.${level}`) };
    return t(`addresses.why.asks.${asks}`, words);
  }
  return trustedProxy ? t('addresses.why.proxy') : t('addresses.why.nothing');
}

/** Verdicts that say the same. */
export function sameVerdict(a: Verdict, b: Verdict): boolean {
  return a.outcome === b.outcome && a.ban?.id === b.ban?.id && reasonText(a) === reasonText(b);
}
