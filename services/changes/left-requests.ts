import { clustersWithRequests } from '../../models/config/publish-requests.ts';
import { publishClusterRequests } from '../../pipeline/publish-requested.ts';
import { systemCall } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** A request that young belongs to the action that made it. */
const REQUEST_AGE_SECONDS = 3;

/** Publishes what the actions could not in time. */
export async function publishLeftRequests(runtime: Runtime, signal: AbortSignal): Promise<void> {
  for (const clusterId of await clustersWithRequests(runtime.pools.api, REQUEST_AGE_SECONDS)) {
    if (signal.aborted) return;
    await publishClusterRequests(runtime, systemCall('publish-requests'), clusterId).catch((err: unknown) =>
      runtime.log.warn({ err, clusterId }, 'requested publication failed, will be retried'),
    );
  }
}
