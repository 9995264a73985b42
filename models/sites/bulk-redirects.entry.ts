// Kind "bulk-redirects": the redirects of a site in 256 chunks by hash of the source, so that an edited redirect costs one
// chunk and not all of them.
import { create, toBinary } from '@bufbuild/protobuf';
import { MAX_BULK_REDIRECTS, MAX_TARGET_BYTES } from '../../contract/resources/bulk-redirects.ts';
import { formatRedirectSource, MAX_SOURCE_BYTES, sourceOfKey } from '../../contract/scalars/redirect-source.ts';
import { BulkRedirectsSchema } from '../../proto/gen/svc/config/v1/rules_pb.js';
import type { CompiledEntry, EntryKind } from '../config/entry-kind.ts';
import { siteOwner } from '../config/entry-owner.ts';
import {
  type BulkRedirectRow,
  bulkRedirectChunks,
  type PlacedRedirect,
  sitesWithBulkRedirects,
} from './bulk-redirect.ts';

/** The settings of a chunk. */
export interface BulkRedirectChunk {
  /** By source. */
  redirects: BulkRedirectRow[];
}

/** Sites looked at together; each has up to 256 chunks. */
const LIST_BATCH = 4;
/** All redirects of a site at their largest: nothing keeps them from falling into one chunk. */
const MAX_BODY_BYTES = MAX_BULK_REDIRECTS * (MAX_SOURCE_BYTES + MAX_TARGET_BYTES + 16);

/** Id of a chunk's entry. */
export function bulkRedirectsId(siteId: string, chunk: number): string {
  return `${siteId}/${chunk}`;
}

export const bulkRedirectsKind: EntryKind = {
  kind: 'bulk-redirects',
  compilerVersion: 1,
  bypass: false,
  routes: () => true,
  onRollback: 'restore',
  defaults: { redirects: [] } satisfies BulkRedirectChunk,
  shown: (settings) => shown(settings as BulkRedirectChunk),
  partOf: (id) => chunkOfId(id)[0],
  maxBodyBytes: MAX_BODY_BYTES,
  scope: 'cluster',
  ownerOf: (id) => siteOwner(chunkOfId(id)[0]),
  async compile(sql, clusterId, ids) {
    const rows = await bulkRedirectChunks(sql, clusterId, ids.map(chunkOfId));
    const chunks = Map.groupBy(rows, ({ siteId, chunk }) => bulkRedirectsId(siteId, chunk));
    return new Map(
      [...chunks].map(([id, redirects]) => [
        id,
        compileChunk(
          chunkOfId(id)[0],
          redirects.map(({ siteId: _site, chunk: _chunk, ...redirect }) => redirect),
        ),
      ]),
    );
  },
  async *list(sql, clusterId) {
    let after = '';
    for (;;) {
      const sites = await sitesWithBulkRedirects(sql, clusterId, after, LIST_BATCH);
      if (sites.length === 0) return;
      yield sites.flatMap(({ siteId, chunks }) => chunks.map((chunk) => bulkRedirectsId(siteId, chunk)));
      after = sites.at(-1)!.siteId;
    }
  },
};

/** What is published of chunks of a site that has these redirects, so that they need not be read again. */
export function compileChunks(
  siteId: string,
  rows: readonly PlacedRedirect[],
  chunks: readonly number[],
): { kind: string; id: string; compiled: CompiledEntry | null }[] {
  const byChunk = Map.groupBy(rows, ({ chunk }) => chunk);
  return chunks.map((chunk) => {
    const redirects = byChunk.get(chunk);
    const compiled =
      redirects === undefined
        ? null
        : compileChunk(
            siteId,
            redirects.map(({ chunk: _chunk, ...redirect }) => redirect),
          );
    return { kind: bulkRedirectsKind.kind, id: bulkRedirectsId(siteId, chunk), compiled };
  });
}

function compileChunk(siteId: string, redirects: BulkRedirectRow[]): CompiledEntry {
  const message = create(BulkRedirectsSchema, {
    siteId,
    redirects: redirects.map(({ statusCode, ...redirect }) => ({ ...redirect, status: statusCode })),
  });
  return { body: toBinary(BulkRedirectsSchema, message), features: ['rules-v2'], refs: [], settings: { redirects } };
}

/** A field for each redirect, by its source as people read it. */
function shown({ redirects }: BulkRedirectChunk): object {
  return Object.fromEntries(
    redirects.map(({ source, ...redirect }) => [formatRedirectSource(sourceOfKey(source)), redirect]),
  );
}

/** The site and the chunk of an entry. */
export function chunkOfId(id: string): [siteId: string, chunk: number] {
  const [site = '', chunk] = id.split('/');
  return [site, Number(chunk)];
}
