import type { Input } from '../../contract/procedure.ts';
import type { AlertPolicy, alertPolicy } from '../../contract/resources/alerts.ts';
import {
  ALERT_POLICY,
  DEFAULT_ALERT_POLICY,
  readAlertPolicy,
  writeAlertPolicy,
} from '../../models/alerts/alert-policy.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { lockSetting, settingTarget } from '../../models/db/setting.ts';
import { assertUpdatedAt, nextUpdatedAt } from '../../models/db/updated-at.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

export function getPolicy({ pools }: Runtime): Promise<AlertPolicy> {
  return readAlertPolicy(pools.api);
}

/** Throws UPDATED_AT_MISMATCH. */
export async function setPolicy(
  runtime: Runtime,
  { expectedUpdatedAt, ...input }: Input<typeof alertPolicy.set>,
  call: Call,
): Promise<AlertPolicy> {
  return write(runtime, call, {}, async (tx) => {
    await lockSetting(tx.sql, ALERT_POLICY);
    const before = await readAlertPolicy(tx.sql);
    assertUpdatedAt(expectedUpdatedAt, before.updatedAt === null ? null : new Date(before.updatedAt));
    const at = nextUpdatedAt(new Date(before.updatedAt ?? 0), tx.now);
    const policy = { ...DEFAULT_ALERT_POLICY, ...input, updatedAt: at.toISOString() };
    await writeAlertPolicy(tx.sql, policy, tx.now);
    const { updatedAt: _, ...said } = policy;
    await recordAudit(tx, 'alert.policy_update', settingTarget(ALERT_POLICY), said);
    return policy;
  });
}
