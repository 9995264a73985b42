// Sampling that was turned on until a time ends then.

import { DEFAULT_LOGS } from '../../contract/resources/site-logs.ts';
import { replaceSiteSetting } from '../../mixins/site-setting.ts';
import { sitesSampledUntil } from '../../models/logs/sampled-sites.ts';
import { readSiteSetting } from '../../models/sites/site-setting.ts';
import { systemCall } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { SITE_LOGS } from './settings.ts';

/** Sites of a round. */
const AT_ONCE = 100;

/** Stops the sampling of sites whose time is over; what else they log stays. */
export async function endSampling(runtime: Runtime, signal: AbortSignal, now: Date = new Date()): Promise<void> {
  const { pools, log } = runtime;
  for (const id of await sitesSampledUntil(pools.api, now, AT_ONCE)) {
    if (signal.aborted) return;
    // An operator who saves meanwhile may have given it more time: the next round looks again.
    await endOne(runtime, id, now).catch((err: unknown) =>
      log.warn({ err, siteId: id }, 'sampling of a site not ended, will be retried'),
    );
  }
}

async function endOne(runtime: Runtime, id: string, now: Date): Promise<void> {
  const saved = await readSiteSetting(runtime.pools.api, SITE_LOGS.table, id, DEFAULT_LOGS);
  const until = saved?.settings.sampleUntil ?? null;
  if (!saved || until === null || Date.parse(until) > now.getTime()) return;
  await replaceSiteSetting(runtime, systemCall('request-logs'), SITE_LOGS, {
    id,
    settings: { ...saved.settings, sampleRate: 0, sampleUntil: null },
    expectedUpdatedAt: saved.updatedAt?.toISOString() ?? null,
  });
}
