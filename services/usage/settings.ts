import { isDeepStrictEqual } from 'node:util';
import type { Input } from '../../contract/procedure.ts';
import type { UsageSettings, usageSettings } from '../../contract/resources/usage.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { lockSetting, settingTarget } from '../../models/db/setting.ts';
import { readUsageSettings, USAGE, writeUsageSettings } from '../../models/usage/usage-setting.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

export async function getUsageSettings({ pools }: Runtime): Promise<UsageSettings> {
  return readUsageSettings(pools.api);
}

export async function setUsageSettings(
  runtime: Runtime,
  input: Input<typeof usageSettings.set>,
  call: Call,
): Promise<UsageSettings> {
  return write(runtime, call, {}, async (tx) => {
    await lockSetting(tx.sql, USAGE);
    const before = await readUsageSettings(tx.sql);
    const after = { ...before, ...input };
    if (isDeepStrictEqual(before, after)) return after;
    await writeUsageSettings(tx.sql, after, tx.now);
    await recordAudit(tx, 'system.usage_update', settingTarget(USAGE), { before, after });
    return after;
  });
}
