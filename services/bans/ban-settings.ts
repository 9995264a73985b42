import { isDeepStrictEqual } from 'node:util';
import type { Input } from '../../contract/procedure.ts';
import type { banSettings } from '../../contract/resources/bans.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { holdBanGuard } from '../../models/bans/ban-guard.ts';
import { BANS, type BanSettings, readBanSettings, writeBanSettings } from '../../models/bans/ban-setting.ts';
import { settingTarget } from '../../models/db/setting.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

export async function getBanSettings({ pools }: Runtime): Promise<BanSettings> {
  return readBanSettings(pools.api);
}

/** Changes the given settings; a lower limit lifts nothing, it only ends creating. */
export async function setBanSettings(
  runtime: Runtime,
  input: Input<typeof banSettings.set>,
  call: Call,
): Promise<BanSettings> {
  return write(runtime, call, {}, async (tx) => {
    await holdBanGuard(tx.sql);
    const before = await readBanSettings(tx.sql);
    const after = { ...before, ...input };
    if (isDeepStrictEqual(before, after)) return after;
    await writeBanSettings(tx.sql, after, tx.now);
    await recordAudit(tx, 'system.bans_update', settingTarget(BANS), { before, after });
    return after;
  });
}
