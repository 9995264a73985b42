// Error pages of all clusters, read and changed.
import type { Input, Output } from '../../contract/procedure.ts';
import { PLATFORM_STATUSES, type platformPages } from '../../contract/resources/error-pages.ts';
import { recordAudit } from '../../models/audit/audit-entry.ts';
import { requestPublication } from '../../models/config/publish-requests.ts';
import { lockSetting, settingTarget } from '../../models/db/setting.ts';
import { PLATFORM_PAGES_KIND } from '../../models/pages/platform-pages.entry.ts';
import { ERROR_PAGES, readPlatformPages, writePlatformPages } from '../../models/pages/platform-pages.ts';
import { shownTemplate } from '../../models/pages/template.ts';
import { publishRequested } from '../../pipeline/publish-requested.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';
import { assertTemplate } from './given-pages.ts';

type Pages = Output<typeof platformPages.get>;

const FIELDS = ['unknownHost', 'siteDisabled'] as const;

export function getPlatformPages({ pools }: Runtime): Promise<Pages> {
  return readPlatformPages(pools.api);
}

/** Changes the given pages; every cluster gets them as one entry. Throws ERROR_PAGE_TOO_LARGE. */
export async function setPlatformPages(
  runtime: Runtime,
  input: Input<typeof platformPages.set>,
  call: Call,
): Promise<Pages> {
  for (const field of FIELDS) assertTemplate(input[field] ?? '', PLATFORM_STATUSES[field], `/${field}`);
  let clusterIds: string[] = [];
  const output = await write(runtime, call, {}, async (tx) => {
    await lockSetting(tx.sql, ERROR_PAGES);
    const before = await readPlatformPages(tx.sql);
    const after = { ...before, ...input };
    if (FIELDS.every((field) => before[field] === after[field])) return after;
    await writePlatformPages(tx.sql, after, tx.now);
    await recordAudit(tx, 'system.error_pages_update', settingTarget(ERROR_PAGES), {
      before: told(before),
      after: told(after),
    });
    clusterIds = await requestPublication(tx, {
      entries: [{ kind: PLATFORM_PAGES_KIND, id: '' }],
      reason: 'error_pages_updated',
    });
    return after;
  });
  await publishRequested(runtime, call, clusterIds);
  return output;
}

function told({ unknownHost, siteDisabled }: Pages): Pages {
  return { unknownHost: shownTemplate(unknownHost), siteDisabled: shownTemplate(siteDisabled) };
}
