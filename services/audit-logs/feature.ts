import { countDays } from '../../mixins/count-days.ts';
import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { HOUR_MS, sweep } from '../../mixins/sweep.ts';
import { purgeAuditLog } from '../../models/db/sweeps.ts';

export const feature = {
  jobs: [sweep('purge-audit-log', HOUR_MS, purgeAuditLog), countDays('audit_entry')],
} satisfies ServiceFeature;
