import { HOUR_MS, SECOND_MS, sweep } from '../../../mixins/sweep.ts';
import { sweepRehearsals } from '../../../models/certificates/acme-certificate.ts';
import { sweepBuckets } from '../../../models/certificates/acme-order.ts';
import type { LeaderJob } from '../../../runtime/leader.ts';
import { removeEndedRecords } from './dns/remove-records.ts';
import { checkRenewals } from './renewal-times.ts';
import { workOrders } from './work-orders.ts';

export const acmeJobs: readonly LeaderJob[] = [
  { name: 'certificates.orders', everyMs: SECOND_MS, run: (runtime, signal) => workOrders(runtime, signal) },
  { name: 'certificates.dns-records', everyMs: SECOND_MS, run: removeEndedRecords },
  { name: 'certificates.renewals', everyMs: 5 * SECOND_MS, run: (runtime, signal) => checkRenewals(runtime, signal) },
  sweep('certificates.rehearsals', HOUR_MS, sweepRehearsals),
  {
    name: 'certificates.buckets',
    everyMs: HOUR_MS,
    async run({ pools }) {
      await sweepBuckets(pools.api);
    },
  },
];
