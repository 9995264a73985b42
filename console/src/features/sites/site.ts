import type { Output } from '@contract/procedure.ts';
import type { siteStanding } from '@contract/resources/site-standing.ts';
import type { sites } from '@contract/resources/sites.ts';
import { formatNumber } from '@/shared/i18n/format.ts';

export type Site = Output<typeof sites.get>;
export type Standing = Output<typeof siteStanding.standing>;
export type Launch = Output<typeof sites.launch>;

/** Props of every tab of a site. */
export interface SiteTabProps {
  site: Site;
  reload: () => Promise<void>;
}

/** Requests a second; small ones with a decimal. */
export function rateText(perSecond: number): string {
  return formatNumber(perSecond, { maximumFractionDigits: perSecond < 10 ? 1 : 0 });
}
