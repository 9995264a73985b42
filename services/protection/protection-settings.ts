import { isDeepStrictEqual } from 'node:util';
import type { Input, Output } from '../../contract/procedure.ts';
import type { protectionSettings } from '../../contract/resources/protection-settings.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { requestPublication } from '../../models/config/publish-requests.ts';
import { lockSetting, settingTarget } from '../../models/db/setting.ts';
import { PLATFORM_PROTECTION_KIND } from '../../models/security/platform-protection.entry.ts';
import {
  PROTECTION,
  readProtectionSettings,
  writeProtectionSettings,
} from '../../models/security/protection-setting.ts';
import { publishRequested } from '../../pipeline/publish-requested.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

type Settings = Output<typeof protectionSettings.get>;

export async function getProtectionSettings({ pools }: Runtime): Promise<Settings> {
  return readProtectionSettings(pools.api);
}

/** Changes the given settings; Under Attack goes to every cluster as one entry, whatever its number of sites. */
export async function setProtectionSettings(
  runtime: Runtime,
  input: Input<typeof protectionSettings.set>,
  call: Call,
): Promise<Settings> {
  let clusterIds: string[] = [];
  const output = await write(runtime, call, {}, async (tx) => {
    await lockSetting(tx.sql, PROTECTION);
    const before = await readProtectionSettings(tx.sql);
    const after = { ...before, ...input };
    if (isDeepStrictEqual(before, after)) return after;
    await writeProtectionSettings(tx.sql, after, tx.now);
    await recordAudit(tx, 'system.protection_update', settingTarget(PROTECTION), { before, after });
    if (differsAtNodes(before, after)) {
      clusterIds = await requestPublication(tx, {
        entries: [{ kind: PLATFORM_PROTECTION_KIND, id: '' }],
        reason: 'platform_protection_updated',
      });
    }
    return after;
  });
  await publishRequested(runtime, call, clusterIds);
  return output;
}

function differsAtNodes(before: Settings, after: Settings): boolean {
  if (before.underAttack !== after.underAttack) return true;
  return after.underAttack && before.underAttackChallenge !== after.underAttackChallenge;
}
