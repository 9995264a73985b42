import { isDeepStrictEqual } from 'node:util';
import type { Input } from '../../contract/procedure.ts';
import type { LogSettings, logSettings } from '../../contract/resources/log-settings.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { lockSetting, settingTarget } from '../../models/db/setting.ts';
import { LOGS, readLogSettings, writeLogSettings } from '../../models/logs/log-setting.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

export async function getPlatformLogs({ pools }: Runtime): Promise<LogSettings> {
  return readLogSettings(pools.api);
}

export async function setPlatformLogs(
  runtime: Runtime,
  input: Input<typeof logSettings.set>,
  call: Call,
): Promise<LogSettings> {
  return write(runtime, call, {}, async (tx) => {
    await lockSetting(tx.sql, LOGS);
    const before = await readLogSettings(tx.sql);
    const after = { ...before, ...input };
    if (isDeepStrictEqual(before, after)) return after;
    await writeLogSettings(tx.sql, after, tx.now);
    await recordAudit(tx, 'system.logs_update', settingTarget(LOGS), { before, after });
    return after;
  });
}
