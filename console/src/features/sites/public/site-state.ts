// What a site is, in one word with one colour, wherever it is shown: lists, heads, counts, what needs somebody.
import type { Output } from '@contract/procedure.ts';
import { SITE_STATES, type SiteState, type sites } from '@contract/resources/sites.ts';
import type { Tone } from '@/shared/state/tone.ts';

export { SITE_STATES, type SiteState };

type Delivery = Output<typeof sites.get>['delivery'];

const TONES: Readonly<Record<SiteState, Tone>> = {
  unserved: 'red',
  unknown: 'grey',
  pending: 'blue',
  partial: 'amber',
  live: 'green',
  disabled: 'grey',
};

/** The word is `sites.state.<word>`. */
export function siteState(delivery: Pick<Delivery, 'state' | 'unserved' | 'unknown'>): { word: SiteState; tone: Tone } {
  const { state, unserved, unknown } = delivery;
  const word = unserved ? 'unserved' : unknown ? 'unknown' : state;
  return { word, tone: TONES[word] };
}
