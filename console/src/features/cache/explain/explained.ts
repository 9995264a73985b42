// What an explanation of the cache says, in the order in which it is read. Pure.
import type { CacheExplanation } from '@contract/resources/cache-explain.ts';
import type { Tone } from '@/shared/state/tone.ts';

export const DECISION_TONES: Readonly<Record<CacheExplanation['decision'], Tone>> = {
  stored: 'green',
  not_stored: 'amber',
  bypassed: 'amber',
  ended: 'amber',
  response_needed: 'blue',
  undecided: 'amber',
};

/** Seconds for which a node that stores the response now serves it without asking the origin. */
export function freshFor({ freshness }: CacheExplanation): number | null {
  if (!freshness || freshness.validated) return null;
  return Math.max(0, freshness.lifetimeSeconds - freshness.ageSeconds);
}

/** As `name: value`; the name alone where it has no value. */
export function decider({ decidedBy }: CacheExplanation): string {
  if (!decidedBy) return '';
  const { name, value } = decidedBy;
  return value === null ? name : `${name}: ${value}`;
}
