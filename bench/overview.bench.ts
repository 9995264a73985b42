// The overview of 100,000 sites on 200 nodes, with 10,000 bans and as much measured as is kept: of all clusters, and of the
// one that has nine in ten of the sites. Beside it a plain count of all sites in the same rounds. The stores run without
// fsync, as in tests; nothing is written while it is read.
import type { Knex } from 'knex';
import { createCluster } from '../models/clusters/create-cluster.ts';
import { systemCall } from '../runtime/call.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { write } from '../runtime/write.ts';
import { readOverview } from '../services/overview/overview.ts';
import { createSite } from '../services/sites/create-site.ts';
import { updateSite } from '../services/sites/update-site.ts';
import { startBenchRuntime } from './lib/bench-runtime.ts';
import { copySites } from './lib/copy-sites.ts';
import { percentile, summary } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title =
  'the overview of 100,000 sites on 200 nodes, of all clusters and of one, beside a plain count of sites';

const AIM_MS = 30;
const NODES = 200;
/** One node in this many has not got the latest revisions. */
const BEHIND_EVERY = 20;
const CHANGES = 10;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const sites = quick ? 2000 : 100_000;
  const bans = quick ? 200 : 10_000;
  const rounds = quick ? 5 : 101;
  const { runtime, stop } = await startBenchRuntime('overview');
  try {
    const sql = runtime.pools.api;
    const large = await fillCluster(runtime, 'large', Math.round(sites * 0.9));
    const small = await fillCluster(runtime, 'small', Math.round(sites * 0.1));
    log(`${sites} sites are published`);
    for (const clusterId of [large, small]) await fillNodes(sql, clusterId, NODES / 2);
    await fillRest(sql, [large, small], bans);
    await sql.raw('vacuum analyze');

    const times: Record<'all' | 'cluster' | 'plain', number[]> = { all: [], cluster: [], plain: [] };
    const read = (clusterId: string | null) => readOverview(runtime, clusterId, () => 'ok');
    // The first rounds warm caches up and are not counted.
    for (let round = -3; round < rounds; round++) {
      const [all, whole] = await timed(() => read(null));
      const [cluster, part] = await timed(() => read(large));
      const [plain, count] = await timed(() => sql('site').count({ count: '*' }));
      if (whole.sites !== Number(count[0]!.count))
        throw new Error(`${whole.sites} sites instead of ${count[0]!.count}`);
      if (part.siteStates.partial === 0 || part.nodes !== NODES / 2) throw new Error('the installation is another');
      if (round < 0) continue;
      times.all.push(all);
      times.cluster.push(cluster);
      times.plain.push(plain);
    }
    const reached = (sample: readonly number[]) => percentile(sample, 95) <= AIM_MS;
    return {
      figures: {
        sites,
        nodes: NODES,
        bans,
        all: summary(times.all),
        cluster: summary(times.cluster),
        plainCount: summary(times.plain),
      },
      aims: [
        { aim: `of all clusters p95 ≤ ${AIM_MS} ms`, reached: reached(times.all) },
        { aim: `of one cluster p95 ≤ ${AIM_MS} ms`, reached: reached(times.cluster) },
      ],
    };
  } finally {
    await stop();
  }
}

async function timed<T>(work: () => Promise<T>): Promise<[number, T]> {
  const started = performance.now();
  const answer = await work();
  return [performance.now() - started, answer];
}

/** A cluster with that many sites, every one published, of which some were changed one by one. */
async function fillCluster(runtime: Runtime, name: string, sites: number): Promise<string> {
  const call = systemCall('bench');
  const clusterId = await write(runtime, call, {}, (tx) => createCluster(tx, runtime.sealer, { name }));
  const origins = [{ address: 'origin.example.net', port: 80 }];
  const input = { clusterId, name: `first of ${name}`, domains: [`first.${name}.example`], origins };
  const { site } = await createSite(runtime, input as Parameters<typeof createSite>[1], call);
  const ids = await copySites(runtime, clusterId, site.id, sites - 1);
  for (let index = 0; index < CHANGES; index++) {
    const change = { id: ids[index]!, origins: [{ address: 'origin.example.net', port: 8000 + index }] };
    await updateSite(runtime, change as Parameters<typeof updateSite>[1], call);
  }
  return clusterId;
}

/** Connected nodes, most of them with the newest revision. */
async function fillNodes(sql: Knex, clusterId: string, nodes: number): Promise<void> {
  await sql.raw(
    `with made as (
       insert into node (cluster_id, node_group_id, name)
       select :clusterId, g.id, 'edge-' || n from node_group g, generate_series(1, :nodes::int) n
        where g.cluster_id = :clusterId and g.is_default returning id, cluster_id
     )
     insert into node_state (node_id, last_seen_at, data_plane_healthy, epoch, track, revision)
     select m.id, now() + interval '1 hour', true, h.epoch, 'S',
         h.revision - case when row_number() over () % ${BEHIND_EVERY} = 0 then ${CHANGES} else 0 end
       from made m join cluster_head h using (cluster_id)`,
    { clusterId, nodes },
  );
}

/** Bans of all clusters, a day of requests, and how fast the latest changes arrived. */
async function fillRest(sql: Knex, clusters: readonly string[], bans: number): Promise<void> {
  await sql.raw(
    `insert into ban (scope, cidr, reason, source, node_id, expires_at, seq)
     select 'platform', ('10.' || n / 65536 || '.' || n / 256 % 256 || '.' || n % 256)::cidr, 'abuse',
         case n % 2 when 0 then 'manual' else 'auto' end, 'node', now() + interval '1 day', n
       from generate_series(1, ?::int) n`,
    [bans],
  );
  for (const clusterId of clusters) {
    await sql.raw(
      `insert into cluster_request_minute (cluster_id, minute, requests)
       select :clusterId, date_trunc('minute', now()) - n * interval '1 minute', 6000 from generate_series(1, 1440) n`,
      { clusterId },
    );
    await sql.raw(
      `insert into propagation (feed, cluster_id, epoch, number, published_at, nodes, reached, slowest_ms, slowest_node_id)
       select f.feed, case f.feed when 'bans' then '' else :clusterId end, 1, n * 2 + :odd::int,
           now() - n * interval '10 seconds', 100, 100, n % 97, (select min(id) from node)
         from (values ('config'), ('bans')) f(feed), generate_series(1, 2500) n`,
      { clusterId, odd: clusters.indexOf(clusterId) },
    );
  }
}
