import { LEVELS } from '../../contract/scalars/challenge.ts';
import type { FoundAttention } from '../../mixins/attention.ts';
import { countDays } from '../../mixins/count-days.ts';
import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS, sweep } from '../../mixins/sweep.ts';
import { purgeAlerts, purgeSecurityEventNames, purgeSecurityHeavy } from '../../models/db/sweeps.ts';
import { type AboveNormal, sitesAboveNormal } from '../../models/overview/overview.ts';
import { dropOldSecurityPartitions, makeSecurityPartitions } from '../../models/security/security-partitions.ts';
import { reviewCcAlerts } from '../../models/security/security-report.ts';
import type { Runtime } from '../../runtime/runtime.ts';

export const feature = {
  jobs: [
    { name: 'cc-alerts', everyMs: 15 * SECOND_MS, run: ({ pools }) => reviewCcAlerts(pools.api, new Date()) },
    { name: 'security-event-days', everyMs: HOUR_MS, run: keepSecurityEventDays },
    sweep('purge-security-event-names', HOUR_MS, purgeSecurityEventNames),
    countDays('security_event'),
    sweep('purge-security-heavy', 10 * MINUTE_MS, purgeSecurityHeavy),
    sweep('purge-alerts', HOUR_MS, purgeAlerts),
  ],
  attention: {
    // Reports of nodes and the job above open and close the alert cc_mitigation of each site.
    kinds: { sites_above_normal: { alert: null } },
    find: async (sql, clusterId) => (await sitesAboveNormal(sql, clusterId)).map(sitesItem),
  },
} satisfies ServiceFeature;

function sitesItem({ clusterId, clusterName, count, level, since, named }: AboveNormal): FoundAttention {
  return {
    kind: 'sites_above_normal',
    // Challenges do their work; a captcha is the last there is.
    level: LEVELS[level] === 'captcha' ? 'act' : 'watch',
    clusterId,
    clusterName,
    at: since.toISOString(),
    count,
    named: named.map(({ id, name, level: own }) => ({ type: 'site', id, name, reason: LEVELS[own]! })),
  };
}

async function keepSecurityEventDays({ pools, log }: Runtime): Promise<void> {
  const now = new Date();
  await makeSecurityPartitions(pools.api, now);
  const dropped = await dropOldSecurityPartitions(pools.api, now);
  if (dropped.length > 0) log.info({ dropped }, 'old security events deleted');
}
