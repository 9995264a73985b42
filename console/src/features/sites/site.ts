import type { Output } from '@contract/procedure.ts';
import type { sites } from '@contract/resources/sites.ts';

export type Site = Output<typeof sites.get>;
export type Launch = Output<typeof sites.launch>;

/** Props of every tab of a site. */
export interface SiteTabProps {
  site: Site;
  reload: () => Promise<void>;
}
