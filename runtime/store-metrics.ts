import type { Knex } from 'knex';
import { Gauge } from 'prom-client';
import type { Runtime } from './runtime.ts';

interface TarnPool {
  numUsed(): number;
  numFree(): number;
  numPendingAcquires(): number;
}

/** State of the database pools and of Redis, read when the metrics are. */
export function registerStoreMetrics({ metrics, pools, redis }: Pick<Runtime, 'metrics' | 'pools' | 'redis'>): void {
  const connections = new Gauge({
    name: 'svc_database_pool_connections',
    help: 'Connections of a database pool by state; waiting: requests that wait for a connection',
    labelNames: ['pool', 'state'],
    registers: [metrics],
    collect() {
      for (const [name, pool] of [
        ['api', tarn(pools.api)],
        ['jobs', tarn(pools.jobs)],
        ['bans', tarn(pools.bans)],
      ] as const) {
        connections.set({ pool: name, state: 'used' }, pool.numUsed());
        connections.set({ pool: name, state: 'idle' }, pool.numFree());
        connections.set({ pool: name, state: 'waiting' }, pool.numPendingAcquires());
      }
      for (const name of ['channel', 'ingest'] as const) {
        const { totalCount, idleCount, waitingCount } = pools[name];
        connections.set({ pool: name, state: 'used' }, totalCount - idleCount);
        connections.set({ pool: name, state: 'idle' }, idleCount);
        connections.set({ pool: name, state: 'waiting' }, waitingCount);
      }
    },
  });
  const up = new Gauge({
    name: 'svc_redis_up',
    help: '1 while Redis responds to this process',
    registers: [metrics],
    collect() {
      up.set(redis.status === 'ready' ? 1 : 0);
    },
  });
}

function tarn(knex: Knex): TarnPool {
  return (knex.client as { pool: TarnPool }).pool;
}
