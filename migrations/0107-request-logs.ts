// Rows of request logs, in days, and how many rows are missing.
import type { Knex } from 'knex';

export async function up(trx: Knex.Transaction): Promise<void> {
  await trx.raw(`
    -- What a request did not have is null. There is no reference to site: a row costs no look-up, and rows of deleted sites
    -- are hidden by every query and swept later.
    create table request_log (
      site_id text not null,
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
      primary key (site_id, at, id)
    ) partition by range (at);
    create index request_log_request on request_log (request_hash, site_id);

    -- What each ring of a node has lost of a site in all, as the node said last.
    create table request_log_loss (
      node_id text not null,
      ring bigint not null,
      site_id text not null,
      rows bigint not null,
      updated_at timestamptz not null,
      primary key (node_id, ring, site_id)
    );
    -- Rows that are missing, by the hour in which the console learned of them. no_room: the node had no room for them, or
    -- they were beyond 100 blocked requests a second; refused: no row may be like that; too_old: beyond what is kept.
    create table request_log_missing (
      site_id text not null,
      hour timestamptz not null,
      node_id text not null,
      reason text not null check (reason in ('no_room', 'refused', 'too_old')),
      rows bigint not null,
      primary key (site_id, hour, node_id, reason)
    );
    create index request_log_missing_hour on request_log_missing (hour);
  `);
}
