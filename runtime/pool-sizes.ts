// How many connections to the database a process may have: as many as the services that run in it need, and not one more.
import type { Pools } from './runtime.ts';

export type PoolSizes = Readonly<Record<keyof Pools, number>>;

/** What a service of requests needs that says nothing else. */
export const FOR_REQUESTS: Partial<PoolSizes> = { api: 10 };

/** Of a process that runs all services. */
export const FOR_ALL: PoolSizes = { api: 10, jobs: 4, bans: 6, channel: 6, ingest: 1 };

/** Of every process: its start, and its readiness. */
const LEAST: PoolSizes = { api: 2, jobs: 1, bans: 1, channel: 1, ingest: 1 };

/** Services of one process share its pools: each pool is as large as the one that needs it most says. */
export function poolSizes(needs: readonly Partial<PoolSizes>[]): PoolSizes {
  const most = (pool: keyof Pools) => Math.max(LEAST[pool], ...needs.map((need) => need[pool] ?? 0));
  return {
    api: most('api'),
    jobs: most('jobs'),
    bans: most('bans'),
    channel: most('channel'),
    ingest: most('ingest'),
  };
}
