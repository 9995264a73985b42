// Bulk redirects of sites. Each is kept with the chunk it is published in.
import { hash } from 'node:crypto';
import type { Knex } from 'knex';
import type { Static } from 'typebox';
import type { BulkRedirect as Schema } from '../../contract/resources/bulk-redirects.ts';

type Redirect = Static<typeof Schema>;

/** A redirect as it is stored: its source is what a node finds it by (contract/scalars/redirect-source.ts). */
export interface BulkRedirectRow extends Omit<Redirect, 'source'> {
  source: string;
}

/** With the chunk it is published in. */
export interface PlacedRedirect extends BulkRedirectRow {
  chunk: number;
}

/** How a set became another. */
export interface BulkRedirectMove {
  added: number;
  changed: number;
  removed: number;
  /** Chunks in which something differs, in their order. */
  chunks: number[];
}

/** Into how many entries of the configuration the redirects of a site are cut. */
const CHUNKS = 256;
export const EVERY_CHUNK: readonly number[] = Array.from({ length: CHUNKS }, (_, chunk) => chunk);

const COLUMNS = 'r.source, r.target, r.status as "statusCode", r.preserve_query as "preserveQuery"';

/** The chunk of a source, 0 to 255: nodes and revisions rely on it for good. */
export function chunkOfSource(source: string): number {
  return hash('sha256', source, 'buffer').readUInt32BE(0) % CHUNKS;
}

/** Once for all redirects of a save: the digests are the larger part of what checking it takes. */
export function placed(redirects: readonly BulkRedirectRow[]): PlacedRedirect[] {
  return redirects.map((redirect) => ({ ...redirect, chunk: chunkOfSource(redirect.source) }));
}

/** By source. */
export async function bulkRedirectsOf(sql: Knex, siteId: string): Promise<BulkRedirectRow[]> {
  const { rows } = await sql.raw<{ rows: BulkRedirectRow[] }>(
    `select ${COLUMNS} from bulk_redirect r where r.site_id = ? order by r.source`,
    [siteId],
  );
  return rows;
}

/** Those of a site that have one of the sources, in their stored form. */
export async function bulkRedirectsByKey(
  sql: Knex,
  siteId: string,
  sources: readonly string[],
): Promise<BulkRedirectRow[]> {
  const { rows } = await sql.raw<{ rows: BulkRedirectRow[] }>(
    `select ${COLUMNS} from unnest(?::smallint[], ?::text[]) as asked(chunk, source)
       join bulk_redirect r on r.site_id = ? and r.chunk = asked.chunk and r.source = asked.source`,
    [sources.map(chunkOfSource) as never, sources as never, siteId],
  );
  return rows;
}

/** When the site's redirects were changed last, its creation while they never were; undefined without such a site. */
export async function bulkRedirectsUpdatedAt(sql: Knex, siteId: string): Promise<Date | undefined> {
  const { rows } = await sql.raw<{ rows: { at: Date }[] }>(
    `select coalesce(r.updated_at, s.created_at) as at
       from site s left join bulk_redirect_set r on r.site_id = s.id where s.id = ?`,
    [siteId],
  );
  return rows[0]?.at;
}

export async function touchBulkRedirects(sql: Knex, siteId: string, updatedAt: Date): Promise<void> {
  await sql.raw(
    `insert into bulk_redirect_set (site_id, updated_at) values (?, ?)
     on conflict (site_id) do update set updated_at = excluded.updated_at`,
    [siteId, updatedAt],
  );
}

/**
 * Gives the site, whose lock is held, exactly these redirects, or one chunk of it: rows that are the same are not written.
 */
export async function replaceBulkRedirects(
  sql: Knex,
  siteId: string,
  redirects: readonly PlacedRedirect[],
  chunk: number | null = null,
): Promise<BulkRedirectMove> {
  const { rows } = await sql.raw<{ rows: BulkRedirectMove[] }>(
    `with asked as materialized (
       select * from unnest(:chunks::smallint[], :sources::text[], :targets::text[], :statuses::smallint[],
         :preserves::boolean[]) a(chunk, source, target, status, preserve_query)
     ), gone as (
       delete from bulk_redirect r
         where r.site_id = :siteId and (:chunk::smallint is null or r.chunk = :chunk)
           and not exists (select from asked a where a.chunk = r.chunk and a.source = r.source)
         returning chunk
     ), saved as (
       insert into bulk_redirect as r (site_id, chunk, source, target, status, preserve_query)
         select :siteId, a.chunk, a.source, a.target, a.status, a.preserve_query from asked a
           where not exists (select from bulk_redirect r where r.site_id = :siteId and r.chunk = a.chunk
             and r.source = a.source and r.target = a.target and r.status = a.status
             and r.preserve_query = a.preserve_query)
         on conflict (site_id, chunk, source) do update
           set target = excluded.target, status = excluded.status, preserve_query = excluded.preserve_query
         returning chunk, xmax = 0 as added
     )
     select (select count(*)::int from saved where added) as added,
       (select count(*)::int from saved where not added) as changed,
       (select count(*)::int from gone) as removed,
       array(select chunk from saved union select chunk from gone order by 1)::int[] as chunks`,
    {
      siteId,
      chunk,
      chunks: redirects.map((redirect) => redirect.chunk) as never,
      sources: redirects.map(({ source }) => source) as never,
      targets: redirects.map(({ target }) => target) as never,
      statuses: redirects.map(({ statusCode }) => statusCode) as never,
      preserves: redirects.map(({ preserveQuery }) => preserveQuery) as never,
    },
  );
  return rows[0]!;
}

/** The redirects of chunks of sites that the cluster serves, by chunk and source. */
export async function bulkRedirectChunks(
  sql: Knex,
  clusterId: string,
  asked: readonly (readonly [siteId: string, chunk: number])[],
): Promise<(BulkRedirectRow & { siteId: string; chunk: number })[]> {
  const { rows } = await sql.raw<{ rows: (BulkRedirectRow & { siteId: string; chunk: number })[] }>(
    `select r.site_id as "siteId", r.chunk, ${COLUMNS}
       from unnest(?::text[], ?::smallint[]) as asked(site, chunk)
       join site s on s.id = asked.site and s.cluster_id = ?
       join bulk_redirect r on r.site_id = asked.site and r.chunk = asked.chunk
      order by r.site_id, r.chunk, r.source`,
    [asked.map(([site]) => site) as never, asked.map(([, chunk]) => chunk) as never, clusterId],
  );
  return rows;
}

/** Sites of the cluster after `after` that have redirects, with the chunks of each. */
export async function sitesWithBulkRedirects(
  sql: Knex,
  clusterId: string,
  after: string,
  limit: number,
): Promise<{ siteId: string; chunks: number[] }[]> {
  const { rows } = await sql.raw<{ rows: { siteId: string; chunks: number[] }[] }>(
    `select h.site_id as "siteId", array(
         select distinct r.chunk::int from bulk_redirect r where r.site_id = h.site_id order by 1) as chunks
       from bulk_redirect_set h join site s on s.id = h.site_id
      where s.cluster_id = ? and h.site_id > ? order by h.site_id limit ?`,
    [clusterId, after, limit],
  );
  return rows;
}
