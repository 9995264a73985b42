import { DEFAULT_LOGS, type LogsOfSite } from '../../contract/resources/site-logs.ts';
import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../mixins/sweep.ts';
import { nextUpdatedAt } from '../../models/db/updated-at.ts';
import { sweepGoneSites, sweepLogs } from '../../models/logs/log-days.ts';
import { SITE_LOGS_KIND } from '../../models/sites/site-logs.entry.ts';
import { readSiteSetting, writeSiteSetting } from '../../models/sites/site-setting.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { endSampling } from './end-sampling.ts';

export const feature = {
  jobs: [
    { name: 'request-log-days', everyMs: 5 * MINUTE_MS, run: keepLogDays },
    { name: 'request-log-sampling', everyMs: 15 * SECOND_MS, run: endSampling },
    {
      name: 'request-log-gone-sites',
      everyMs: HOUR_MS,
      run: ({ pools }) => sweepGoneSites(pools.api).then(() => undefined),
    },
  ],
  restores: [
    {
      kind: SITE_LOGS_KIND,
      locks: 'site',
      async save(sql, clusterId, id, then, now) {
        const { updatedAt } = (await readSiteSetting(sql, 'site_logs', id, DEFAULT_LOGS))!;
        const settings = then as LogsOfSite;
        const saved = { settings, updatedAt: nextUpdatedAt(updatedAt, now) };
        await writeSiteSetting(sql, 'site_logs', { id, clusterId }, saved);
      },
    },
  ],
} satisfies ServiceFeature;

async function keepLogDays({ pools, log }: Runtime): Promise<void> {
  const { days, rows } = await sweepLogs(pools.api, new Date());
  if (days.length > 0 || rows > 0) log.info({ days, rows }, 'old request logs deleted');
}
