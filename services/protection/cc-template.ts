import { isDeepStrictEqual } from 'node:util';
import type { Input, Output } from '../../contract/procedure.ts';
import type { ccTemplate } from '../../contract/resources/cc-template.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { requestPublication } from '../../models/config/publish-requests.ts';
import { lockSetting, settingTarget } from '../../models/db/setting.ts';
import { CC_TEMPLATE_KIND } from '../../models/security/cc-template.entry.ts';
import { CC_TEMPLATE, readCcTemplate, writeCcTemplate } from '../../models/security/protection-setting.ts';
import { clustersWithFollowers } from '../../models/security/site-protection.ts';
import { publishRequested } from '../../pipeline/publish-requested.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

type Template = Output<typeof ccTemplate.get>;

export async function getCcTemplate({ pools }: Runtime): Promise<Template> {
  return readCcTemplate(pools.api);
}

/** Changes the given thresholds; clusters with sites that follow the template get it as one entry. */
export async function setCcTemplate(
  runtime: Runtime,
  input: Input<typeof ccTemplate.set>,
  call: Call,
): Promise<Template> {
  let clusterIds: string[] = [];
  const output = await write(runtime, call, {}, async (tx) => {
    await lockSetting(tx.sql, CC_TEMPLATE);
    const before = await readCcTemplate(tx.sql);
    const after = { ...before, ...input };
    if (isDeepStrictEqual(before, after)) return after;
    await writeCcTemplate(tx.sql, after, tx.now);
    await recordAudit(tx, 'system.cc_template_update', settingTarget(CC_TEMPLATE), { before, after });
    clusterIds = await requestPublication(
      tx,
      { entries: [{ kind: CC_TEMPLATE_KIND, id: '' }], reason: 'cc_template_updated' },
      await clustersWithFollowers(tx.sql),
    );
    return after;
  });
  await publishRequested(runtime, call, clusterIds);
  return output;
}
