// Kinds "ip-list" (header) and "ip-list-chunk": an IP list travels as a header and 64 chunks by hash of the entry, so
// that a changed entry costs one chunk and not the list.
import { create, toBinary } from '@bufbuild/protobuf';
import type { Knex } from 'knex';
import { compareCidr, formatCidr, parseCidr } from '../../contract/scalars/cidr.ts';
import { IpListChunkSchema, IpListKind, IpListSchema } from '../../proto/gen/svc/config/v1/cluster_pb.js';
import type { EntryKind, Missing, Reference } from '../config/entry-kind.ts';
import { listOwner } from '../config/entry-owner.ts';

const KINDS: Record<string, IpListKind> = {
  collection: IpListKind.COLLECTION,
  allow: IpListKind.ALLOW,
  block: IpListKind.BLOCK,
};

export const ipListKind: EntryKind = {
  kind: 'ip-list',
  compilerVersion: 1,
  bypass: false,
  onRollback: 'current',
  provides: { list: missingLists },
  scope: 'platform',
  ownerOf: listOwner,
  async compile(sql, _clusterId, ids) {
    const rows = await sql('ip_list')
      .whereIn('id', [...ids])
      .select('id', 'name', 'kind', 'entry_count');
    return new Map(
      rows.map((row) => {
        const message = create(IpListSchema, {
          name: row.name,
          listKind: KINDS[row.kind]!,
          entryCount: row.entry_count,
        });
        return [row.id, { body: toBinary(IpListSchema, message), features: [], refs: [] }];
      }),
    );
  },
  async *list(sql) {
    yield (await sql('ip_list').select('id').orderBy('id')).map((row) => row.id);
  },
};

/** Lists that are gone. */
async function missingLists(sql: Knex, _clusterId: string, references: readonly Reference[]): Promise<Missing[]> {
  const names = references.map(({ name }) => name);
  const there = new Set((await sql('ip_list').whereIn('id', names).select('id')).map(({ id }) => id));
  return references
    .filter(({ name }) => !there.has(name))
    .map((reference) => ({ ...reference, type: 'ip_list', label: reference.name }));
}

/** Id of a chunk's entry. */
export function chunkId(listId: string, chunk: number): string {
  return `${listId}/${chunk}`;
}

export const ipListChunkKind: EntryKind = {
  kind: 'ip-list-chunk',
  compilerVersion: 1,
  bypass: false,
  onRollback: 'current',
  scope: 'platform',
  ownerOf: (id) => listOwner(id.split('/')[0]!),
  async compile(sql, _clusterId, ids) {
    const asked = ids.map((id) => id.split('/') as [string, string]);
    const { rows } = await sql.raw<{ rows: { list: string; chunk: number; cidrs: string[] }[] }>(
      `select e.ip_list_id as list, e.chunk, array_agg(e.cidr::text) as cidrs
         from unnest(?::text[], ?::smallint[]) as asked(list, chunk)
         join ip_list_entry e on e.ip_list_id = asked.list and e.chunk = asked.chunk
        group by 1, 2`,
      [asked.map(([list]) => list) as never, asked.map(([, chunk]) => chunk) as never],
    );
    return new Map(
      rows.map(({ list, chunk, cidrs }) => {
        const message = create(IpListChunkSchema, { listId: list, cidrs: canonical(cidrs) });
        return [chunkId(list, chunk), { body: toBinary(IpListChunkSchema, message), features: [], refs: [] }];
      }),
    );
  },
  async *list(sql) {
    const { rows } = await sql.raw<{ rows: { list: string; chunk: number }[] }>(
      'select distinct ip_list_id as list, chunk from ip_list_entry order by 1, 2',
    );
    yield rows.map(({ list, chunk }) => chunkId(list, chunk));
  },
};

function canonical(cidrs: readonly string[]): string[] {
  return cidrs
    .map((text) => parseCidr(text)!)
    .sort(compareCidr)
    .map(formatCidr);
}
