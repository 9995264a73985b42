// Each day of request logs in 16 parts by site: a search reads the rows of its site and a few others, not those of all
// sites. Rows of before are deleted: there was no release with them.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    drop table request_log;
    create table request_log (
      site_id text not null,
      -- CRC-32 of site_id: a small key, and the part of its day that a row is in.
      site_hash integer not null,
      at timestamptz not null,
      -- Of the node, its process and the number of the row there: doubles have the same.
      id uuid not null,
      node_id text not null,
      client_ip inet,
      method text not null,
      host text not null,
      path text not null,
      status smallint not null,
      bytes_sent bigint not null,
      request_bytes bigint not null,
      duration_ms integer not null,
      sample_rate smallint not null,
      request_id text,
      -- CRC-32 of the request id, which clients choose: a small index whatever they choose.
      request_hash integer,
      cache_status text,
      ja4 text,
      waf_rule_ids text,
      waf_blocked boolean not null,
      user_agent text,
      referer text,
      rule_ids text,
      peer_ip inet,
      http_version text,
      secure boolean not null,
      country text,
      asn bigint,
      as_name text,
      upstream text,
      upstream_status smallint,
      upstream_ms integer,
      content_type text,
      tls_version text,
      block_reason text,
      block_rule_id text,
      query text,
      headers text,
      error_code text,
      primary key (site_hash, at, id)
    ) partition by range (at);
    create index request_log_request on request_log (request_hash);
    -- Few rows, and those that are looked for.
    create index request_log_failed on request_log (site_hash, at, id) where status >= 400 or block_reason is not null;
  `);
}
