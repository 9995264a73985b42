// Statistics of 30 days of one site among 10,000 that had traffic in each hour, and of all sites.
import knexFactory, { type Knex } from 'knex';
import { startTestStores } from '../bin/lib/test-stores.ts';
import { migrate } from '../migrations/run.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { readDimensions } from '../services/analytics/dimensions.ts';
import { readTop } from '../services/analytics/top.ts';
import { readTopRequests } from '../services/analytics/top-requests.ts';
import { readTraffic } from '../services/analytics/traffic.ts';
import { summary } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'statistics of 30 days of one site among 10,000';

const AIM_MS = 100;
const HOURS = 30 * 24;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const sites = quick ? 200 : 10_000;
  const rounds = quick ? 20 : 200;
  const stores = await startTestStores(`${process.pid}-stats-query`);
  await migrate(stores.postgres.url);
  const sql = knexFactory({ client: 'pg', connection: stores.postgres.url, pool: { min: 0, max: 4 } });
  const runtime = { pools: { api: sql } } as unknown as Pick<Runtime, 'pools'>;
  try {
    await fill(sql, sites);
    log(`${sites} sites with ${HOURS} hours each are there`);
    const ofSite: number[] = [];
    for (let round = 0; round < rounds; round++) {
      // Another site each time: none of its rows is in the memory of the database because of the round before.
      const siteId = `site-${(round * 7919) % sites}`;
      ofSite.push(await timed(() => readTraffic(runtime, { range: '30d', siteId })));
    }
    const pages: number[] = [];
    for (let round = 0; round < rounds / 4; round++) {
      const asked = { range: '30d', siteId: `site-${(round * 7919) % Math.min(sites, 500)}` } as const;
      pages.push(
        await timed(() =>
          Promise.all([
            readTraffic(runtime, asked),
            readDimensions(runtime, asked),
            readTopRequests(runtime, { ...asked, by: 'url' }),
            readTopRequests(runtime, { ...asked, by: 'ip' }),
          ]),
        ),
      );
    }
    const ofAll: number[] = [];
    const tops: number[] = [];
    for (let round = 0; round < (quick ? 3 : 15); round++) {
      ofAll.push(await timed(() => readTraffic(runtime, { range: '30d' })));
      tops.push(await timed(() => readTop(runtime, 'site', { range: '30d', limit: 50 })));
    }
    const p95 = ofSite.toSorted((a, b) => a - b)[Math.ceil(rounds * 0.95) - 1]!;
    return {
      figures: {
        sites,
        rows: sites * HOURS,
        siteMs: summary(ofSite),
        pageOfSiteMs: summary(pages),
        allMs: summary(ofAll),
        topSitesMs: summary(tops),
      },
      aims: [{ aim: `30 days of a site: p95 ≤ ${AIM_MS} ms`, reached: p95 <= AIM_MS }],
    };
  } finally {
    await sql.destroy();
    await stores.stop();
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

const COLUMNS =
  'kind, id, starts_at, requests, bytes_sent, bytes_received, cache_hits, cache_misses, s1, s2, s3, s4, s5, figures';

/** Each site and hour with figures as a busy site has them. */
async function fill(sql: Knex, sites: number): Promise<void> {
  await sql.raw(
    `insert into traffic_hour (${COLUMNS})
       select 'site', 'site-' || s, h, 1000 + s % 97, 40000000, 600000, 700, 200, 0, 900, 50, 45, 5,
           '{"s:200":900,"s:304":50,"s:404":45,"s:502":5,"n:http.2":900,"n:http.1.1":100,
             "n:tls.1.3":1000,"n:browser.chrome":700,"n:browser.safari":300,"n:os.windows":500,"n:os.ios":500,
             "n:device.desktop":600,"n:device.mobile":400,"n:failed.origin-timeout":5,"n:blocked.waf":12,
             "l:0":100,"l:1":300,"l:2":200,"l:4":200,"l:6":100,"l:9":80,"l:12":20,"n:origin-latency.6":150,
             "n:origin-latency.9":50}'::jsonb
         from generate_series(date_trunc('hour', now()) - interval '${HOURS - 1} hours', now(), interval '1 hour') h,
           generate_series(0, ${sites - 1}) s
        order by h, s`,
  );
  for (const [kind, id, table, start] of [
    ['site', 'id', 'traffic_day', `date_trunc('day', starts_at, 'UTC')`],
    ['all', `''`, 'traffic_hour', 'starts_at'],
  ]) {
    await sql.raw(
      `insert into ${table} (${COLUMNS})
         select '${kind}', ${id}, ${start}, sum(requests), sum(bytes_sent), sum(bytes_received), sum(cache_hits),
             sum(cache_misses), sum(s1), sum(s2), sum(s3), sum(s4), sum(s5), (array_agg(figures))[1]
           from traffic_hour where kind = 'site' group by 1, 2, 3`,
    );
  }
  await sql.raw(
    `insert into top_list (site_id, list, seconds, starts_at, items)
       select 'site-' || s, l, 86400, d, (
           select jsonb_object_agg('shop.example/products/' || k, jsonb_build_array(1000 - k, 40000)) from generate_series(1, 50) k)
         from generate_series(0, ${sites - 1}) s, generate_series(1, 5) l,
           generate_series(date_trunc('day', now(), 'UTC') - interval '29 days', now(), interval '1 day') d
        where l = 1 or s < 500`,
  );
  await sql.raw('vacuum analyze traffic_hour, traffic_day, top_list');
}
