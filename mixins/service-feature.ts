// What a service adds to lists of the whole console. `services/<name>/feature.ts` exports one as `feature`; nothing else
// knows the folder.
import type { AttentionItem } from '../contract/resources/overview.ts';
import type { ClusterSpan } from '../models/overview/overview-nodes.ts';
import type { SiteCount, SitesBehind } from '../models/overview/overview-sites.ts';
import type { IpListUsers } from '../models/rules/ip-list-user.ts';
import type { LeaderJob } from '../runtime/leader.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { SettingsRestorer } from './settings-restorer.ts';

/** Something that needs somebody: its kind, and what of the item differs from nothing. */
export type FoundAttention = Pick<AttentionItem, 'kind'> & Partial<AttentionItem>;

/** What the overview has read of nodes and sites, of each cluster asked about. */
export interface FleetFacts {
  spans: readonly ClusterSpan[];
  counts: readonly SiteCount[];
  behind: readonly SitesBehind[];
}

export interface ServiceFeature {
  /** What ends by age, and what actions left to do: one process of all runs each. */
  readonly jobs?: readonly LeaderJob[];
  /**
   * What of it needs somebody now, worst first, at most 50; of one cluster when one is asked about: what concerns all of
   * them concerns it, too. Read every two seconds, so from an index.
   */
  readonly attention?: (
    sql: Runtime['pools']['api'],
    clusterId: string | null,
    fleet: Promise<FleetFacts>,
  ) => Promise<FoundAttention[]>;
  /** What of it refers to an IP list, which cannot be deleted then; its usage names them. */
  readonly ipListUsers?: IpListUsers;
  /** How settings of its kinds are put back when somebody rolls back with them. */
  readonly restores?: readonly SettingsRestorer[];
}
