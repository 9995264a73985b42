import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS, sweep } from '../../mixins/sweep.ts';
import { goneSites, liftBansOfGoneSite } from '../../models/bans/gone-site.ts';
import { purgeLostBanReports, purgeLostBans } from '../../models/bans/lost-ban.ts';
import { purgeBanChanges, purgeBans } from '../../models/db/sweeps.ts';
import { systemCall } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';

export const feature = {
  jobs: [
    { name: 'lift-bans-of-gone-sites', everyMs: 2 * SECOND_MS, run: liftBansOfGoneSites },
    sweep('purge-bans', 5 * MINUTE_MS, purgeBans),
    sweep('purge-ban-changes', 5 * MINUTE_MS, purgeBanChanges),
    sweep('purge-lost-bans', 5 * MINUTE_MS, purgeLostBans),
    sweep('purge-lost-ban-reports', HOUR_MS, purgeLostBanReports),
  ],
} satisfies ServiceFeature;

/** Each batch commits by itself: a job that ends half-way is gone on with from there. */
async function liftBansOfGoneSites(runtime: Runtime, signal: AbortSignal): Promise<void> {
  for (const siteId of await goneSites(runtime.pools.bans)) {
    for (let more = true; more && !signal.aborted; ) {
      more = await write(runtime, systemCall('gone-sites'), { pool: 'bans' }, (tx) => liftBansOfGoneSite(tx, siteId));
    }
  }
}
