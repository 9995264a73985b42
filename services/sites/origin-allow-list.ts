import { isDeepStrictEqual } from 'node:util';
import { badField } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { originAllowList } from '../../contract/resources/origin-allow-list.ts';
import { normaliseCidrs } from '../../contract/scalars/cidr.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { requestPublication } from '../../models/config/publish-requests.ts';
import { lockSetting, settingTarget } from '../../models/db/setting.ts';
import { ORIGIN_ALLOW_LIST, readOriginAllowList, writeOriginAllowList } from '../../models/sites/origin-allow-list.ts';
import { publishRequested } from '../../pipeline/publish-requested.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

type AllowList = Output<typeof originAllowList.get>;

export async function getOriginAllowList({ pools }: Runtime): Promise<AllowList> {
  return { cidrs: await readOriginAllowList(pools.api) };
}

/** Replaces the list on every cluster; an equal list changes nothing. Throws BAD_REQUEST. */
export async function setOriginAllowList(
  runtime: Runtime,
  input: Input<typeof originAllowList.set>,
  call: Call,
): Promise<AllowList> {
  const { cidrs, invalid } = normaliseCidrs(input.cidrs);
  if (invalid !== null) badField(`/cidrs/${invalid}`, 'cidr');
  let clusterIds: string[] = [];
  const output = await write(runtime, call, {}, async (tx) => {
    await lockSetting(tx.sql, ORIGIN_ALLOW_LIST);
    const before = await readOriginAllowList(tx.sql);
    if (isDeepStrictEqual(before, cidrs)) return { cidrs };
    await writeOriginAllowList(tx.sql, cidrs, tx.now);
    const added = cidrs.filter((cidr) => !before.includes(cidr));
    const removed = before.filter((cidr) => !cidrs.includes(cidr));
    await recordAudit(tx, 'system.origin_allow_list_update', settingTarget(ORIGIN_ALLOW_LIST), { added, removed });
    clusterIds = await requestPublication(tx, {
      entries: [{ kind: 'origin-policy', id: '' }],
      reason: 'origin_allow_list_updated',
    });
    return { cidrs };
  });
  await publishRequested(runtime, call, clusterIds);
  return output;
}
