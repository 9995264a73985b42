import { purgeAuditLog } from '../../models/db/sweeps.ts';
import { countDays } from '../../runtime/count-days.ts';
import type { ServiceFeature } from '../../runtime/service-feature.ts';
import { HOUR_MS, sweep } from '../../runtime/sweep.ts';

export const feature = {
  jobs: [sweep('purge-audit-log', HOUR_MS, purgeAuditLog), countDays('audit_entry')],
} satisfies ServiceFeature;
