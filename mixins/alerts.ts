// How a service says which alerts are on that depend on the policy of alerts.
import type { AlertKind } from '../contract/resources/alerts.ts';
import type { OpenAlert } from '../models/alerts/alert.ts';
import type { AlertLimits } from '../models/alerts/alert-policy.ts';
import type { Runtime } from '../runtime/runtime.ts';

export interface AlertSource {
  /** Every kind that `find` returns. A kind stands in one source. */
  readonly kinds: readonly AlertKind[];
  /** Alerts whose cause lasts. With `MAX_SUBJECTS` of a kind, some may be missing, and none of the kind ends. Read every 15 seconds. */
  find(sql: Runtime['pools']['api'], policy: AlertLimits): Promise<readonly OpenAlert[]>;
}
