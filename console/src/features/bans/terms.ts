// What a ban says beside its address: where it holds, for how long and why.
import type { Input, Output } from '@contract/procedure.ts';
import type { bans } from '@contract/resources/bans.ts';

export type Ban = Output<typeof bans.list>['items'][number];
export type NewBan = Input<typeof bans.create>;

export interface Terms {
  scope: NewBan['scope'];
  siteId: string;
  reason: NewBan['reason'];
  durationSeconds: number;
}

export const REASONS = ['attack', 'abuse', 'scanner', 'spam', 'other'] as const satisfies readonly NewBan['reason'][];
/** Lengths offered as one click; anything else is typed. */
export const PRESET_SECONDS = [600, 3600, 21_600, 86_400, 604_800] as const;

/** Terms of a new dialog: those a link asks for, an hour otherwise. */
export function termsFor(siteId: string, duration = ''): Terms {
  const seconds = Number(duration);
  return {
    scope: siteId ? 'site' : 'platform',
    siteId,
    reason: 'attack',
    durationSeconds: Number.isInteger(seconds) && seconds > 0 ? seconds : 3600,
  };
}

/** What is sent for one address on these terms, be it whole or not. */
export function inputOf({ scope, siteId, reason, durationSeconds }: Terms, cidr: string): NewBan {
  return { scope, ...(scope === 'site' ? { siteId } : {}), cidr, reason, durationSeconds };
}

/** The ban of one address on these terms; null while no site is chosen. */
export function banOf(terms: Terms, cidr: string): NewBan | null {
  return terms.scope === 'site' && !terms.siteId ? null : inputOf(terms, cidr);
}
