// What a service adds to lists of the whole console. `services/<name>/feature.ts` exports one as `feature`; nothing else
// knows the folder.
import type { IpListUsers } from '../models/rules/ip-list-user.ts';
import type { LeaderJob } from '../runtime/leader.ts';
import type { AlertSource } from './alerts.ts';
import type { AttentionSource } from './attention.ts';
import type { SettingsRestorer } from './settings-restorer.ts';

export interface ServiceFeature {
  /** What ends by age, and what actions left to do: one process of all runs each. */
  readonly jobs?: readonly LeaderJob[];
  /** What of it needs attention, and what alerts of that are about. */
  readonly attention?: AttentionSource;
  /** Alerts that it opens and closes by the policy of alerts. */
  readonly alerts?: AlertSource;
  /** What of it refers to an IP list, which cannot be deleted then; its usage names them. */
  readonly ipListUsers?: IpListUsers;
  /** How settings of its kinds are put back when somebody rolls back with them. */
  readonly restores?: readonly SettingsRestorer[];
}
