// Rows of request logs as an installation has them: sites by Zipf, rows of all sites and nodes mixed in the order in which
// they came, texts as browsers and bots send them.
import type { Knex } from 'knex';
import { DAY_MS, dayOf } from '../../models/db/partitions.ts';

export interface LogData {
  sites: number;
  rowsPerDay: number;
  days: number;
}

const NODES = 5;

/** Site number `n`, from 1, of which 1 is the largest. */
export const siteName = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

/** First moment of the day that was filled so many days ago; 1 is the last full one. */
export const dayAgo = (days: number): number => dayOf(Date.now()) - days * DAY_MS;

/** Fills full days before today. */
export async function fillLogs(
  sql: Knex,
  { sites, rowsPerDay, days }: LogData,
  log: (line: string) => void,
): Promise<void> {
  await sql.raw('select setseed(0.5)');
  for (let ago = days; ago >= 1; ago--) {
    const begun = performance.now();
    const day = new Date(dayAgo(ago)).toISOString();
    await sql.raw('select log_day(?::date)', [day.slice(0, 10)]);
    await sql.raw(DAY, { day, rows: rowsPerDay, sites, nodes: NODES });
    log(`${rowsPerDay} rows of ${day.slice(0, 10)}: ${((performance.now() - begun) / 1000).toFixed(0)} s`);
  }
  await sql.raw('vacuum analyze request_log');
}

// A share of ln((k + 1) / k) / ln(sites + 1) for the site of rank k, which is Zipf's law.
const DAY = `
  insert into request_log (site_id, site_hash, at, id, node_id, client_ip, method, host, path, status, bytes_sent, request_bytes,
    duration_ms, sample_rate, request_id, request_hash, cache_status, waf_blocked, user_agent, referer, http_version, secure,
    country, asn, as_name, upstream, upstream_status, upstream_ms, content_type, tls_version, block_reason, error_code)
  select site_id, crc32(site_id::bytea)::bit(32)::int,
    :day::timestamptz + (g - 1) * interval '86400 seconds' / :rows::int,
    (lpad(to_hex(node), 8, '0') || '-0000-4000-8000-' || lpad(to_hex(g), 12, '0'))::uuid,
    '11111111-0000-4000-8000-' || lpad(node::text, 12, '0'),
    ('10.' || visitor / 65536 % 256 || '.' || visitor / 256 % 256 || '.' || visitor % 256)::inet,
    case when r1 < 0.9 then 'GET' when r1 < 0.99 then 'POST' else 'HEAD' end,
    'www.site-' || site || '.example',
    case when r2 < 0.5 then '/products/category-' || page % 50 || '/item-' || page
      when r2 < 0.9 then '/assets/build/chunk-' || page || '.3f9a1c.js' else '/api/v2/cart/' || page || '/items' end,
    status, 500 + page * 37 % 90000, 600 + page % 400, (5 + 200 * r3 * r3 * r3)::int, 10000,
    request, crc32(request::bytea)::bit(32)::int,
    case when status >= 500 or blocked then null when r2 >= 0.9 then 'BYPASS' when r3 < 0.7 then 'HIT' else 'MISS' end,
    false,
    case visitor % 4
      when 0 then 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36'
      when 1 then 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1'
      when 2 then 'Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0'
      else 'Mozilla/5.0 (compatible; ExampleBot/2.1; +https://bot.example/about)' end,
    case when r3 < 0.6 then 'https://www.site-' || site || '.example/products/category-' || page % 50 end,
    case when r1 < 0.8 then '2' else '1.1' end, r1 < 0.97,
    (array['DE', 'US', 'FR', 'CN', 'JP', 'BR', 'IN', 'GB'])[1 + visitor % 8], 1000 + visitor % 900, 'Example Network ' || visitor % 900,
    case when r3 >= 0.7 or r2 >= 0.9 then '10.20.' || site % 250 || '.7:443' end,
    case when r3 >= 0.7 or r2 >= 0.9 then status end, case when r3 >= 0.7 or r2 >= 0.9 then 20 + page % 300 end,
    case when r2 < 0.5 then 'text/html' when r2 < 0.9 then 'text/javascript' else 'application/json' end,
    case when r1 < 0.97 then '1.3' end, case when blocked then 'rate_limit' end,
    case when blocked then 'policy-denied' when status >= 500 then 'origin-timeout' end
  from (
    select '00000000-0000-4000-8000-' || lpad(site::text, 12, '0') as site_id, g, site, node, visitor, page, r1, r2, r3, status = 429 as blocked, status, md5(g::text || :day) as request from (
      select g, floor(exp(random() * ln(:sites::float8 + 1)))::int as site, 1 + g % :nodes::int as node,
        (random() * random() * 60000)::int as visitor, (random() * random() * 4000)::int as page,
        random() as r1, random() as r2, random() as r3,
        case when s < 0.93 then 200 when s < 0.96 then 304 when s < 0.985 then 404 when s < 0.994 then 429
          when s < 0.999 then 502 else 503 end as status
      from (select g, random() as s from generate_series(1, :rows::int) g) g) given) rows
  order by g`;
