// What ends by age, and what actions left to do: one process of all runs each job.

import { goneSites, liftBansOfGoneSite } from '../../models/gone-site.ts';
import { tellOfflineNodes } from '../../models/node-state.ts';
import { sweepPropagation } from '../../models/propagation.ts';
import { clustersWithRequests } from '../../models/publish-requests.ts';
import { dropOldSecurityPartitions, makeSecurityPartitions } from '../../models/security-partitions.ts';
import { reviewCcAlerts } from '../../models/security-report.ts';
import * as sweeps from '../../models/sweeps.ts';
import { systemCall } from '../../runtime/call.ts';
import type { LeaderJob } from '../../runtime/leader.ts';
import { publishClusterRequests } from '../../runtime/publish-requested.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { write } from '../../runtime/write.ts';
import { ChallengeKeyKeeper } from './challenge-keys.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
/** Two million rows: more than the console can take in, in the time between two runs of a sweep. */
const MAX_BATCHES = 1000;
/** A request that young belongs to the action that made it. */
const REQUEST_AGE_SECONDS = 3;

type Sql = Runtime['pools']['api'];

const OFFLINE_EVERY_MS = 5 * SECOND_MS;
/** A run that came late misses nothing; what is told twice is read twice. */
const OFFLINE_SECONDS = (2 * OFFLINE_EVERY_MS) / SECOND_MS;

const keepers = new WeakMap<Runtime, ChallengeKeyKeeper>();

export const JOBS: readonly LeaderJob[] = [
  { name: 'publish-requests', everyMs: 2 * SECOND_MS, run: publishLeftRequests },
  {
    name: 'tell-offline-nodes',
    everyMs: OFFLINE_EVERY_MS,
    run: ({ pools }) => tellOfflineNodes(pools.channel, OFFLINE_SECONDS),
  },
  { name: 'lift-bans-of-gone-sites', everyMs: 2 * SECOND_MS, run: liftBansOfGoneSites },
  {
    name: 'challenge-keys',
    everyMs: 30 * SECOND_MS,
    run: keepChallengeKeys,
  },
  { name: 'cc-alerts', everyMs: 15 * SECOND_MS, run: ({ pools }) => reviewCcAlerts(pools.api, new Date()) },
  { name: 'security-event-days', everyMs: HOUR_MS, run: keepSecurityEventDays },
  { name: 'raise-delta-floors', everyMs: 5 * MINUTE_MS, run: ({ pools }) => sweeps.raiseDeltaFloors(pools.api) },
  sweep('sweep-entries', 10 * MINUTE_MS, sweeps.sweepEntries),
  sweep('sweep-revisions', HOUR_MS, sweeps.sweepRevisions),
  sweep('sweep-blobs', HOUR_MS, sweeps.sweepBlobs),
  sweep('purge-bans', 5 * MINUTE_MS, sweeps.purgeBans),
  sweep('purge-ban-changes', 5 * MINUTE_MS, sweeps.purgeBanChanges),
  sweep('sweep-propagation', MINUTE_MS, (sql) => sweepPropagation(sql, sweeps.SWEEP_BATCH)),
  sweep('purge-idempotency', HOUR_MS, sweeps.purgeIdempotency),
  sweep('purge-security-event-names', HOUR_MS, sweeps.purgeSecurityEventNames),
  sweep('purge-alerts', HOUR_MS, sweeps.purgeAlerts),
  sweep('purge-enrollment-tokens', HOUR_MS, sweeps.purgeTokens),
  sweep('purge-audit-log', HOUR_MS, sweeps.purgeAuditLog),
];

/** A job that runs a batch until it deletes fewer rows than it may. */
function sweep(name: string, everyMs: number, batch: (sql: Sql) => Promise<number>): LeaderJob {
  return {
    name,
    everyMs,
    async run({ pools }, signal) {
      for (let count = 0; count < MAX_BATCHES && !signal.aborted; count++) {
        if ((await batch(pools.api)) < sweeps.SWEEP_BATCH) return;
      }
    },
  };
}

async function keepSecurityEventDays({ pools, log }: Runtime): Promise<void> {
  const now = new Date();
  await makeSecurityPartitions(pools.api, now);
  const dropped = await dropOldSecurityPartitions(pools.api, now);
  if (dropped.length > 0) log.info({ dropped }, 'old security events dropped');
}

async function keepChallengeKeys(runtime: Runtime, signal: AbortSignal): Promise<void> {
  const keeper = keepers.get(runtime) ?? new ChallengeKeyKeeper();
  keepers.set(runtime, keeper);
  await keeper.run(runtime, signal);
}

/** Publishes what the actions could not in time. */
export async function publishLeftRequests(runtime: Runtime, signal: AbortSignal): Promise<void> {
  for (const clusterId of await clustersWithRequests(runtime.pools.api, REQUEST_AGE_SECONDS)) {
    if (signal.aborted) return;
    await publishClusterRequests(runtime, systemCall('publish-requests'), clusterId).catch((err: unknown) =>
      runtime.log.warn({ err, clusterId }, 'requested publication failed, it will be tried again'),
    );
  }
}

/** Each batch commits by itself: a job that ends half-way is gone on with from there. */
async function liftBansOfGoneSites(runtime: Runtime, signal: AbortSignal): Promise<void> {
  for (const siteId of await goneSites(runtime.pools.bans)) {
    for (let more = true; more && !signal.aborted; ) {
      more = await write(runtime, systemCall('gone-sites'), { pool: 'bans' }, (tx) => liftBansOfGoneSite(tx, siteId));
    }
  }
}
