// IP lists and their entries. Each entry is kept with the chunk it is published in.
import { createHash } from 'node:crypto';
import type { Knex } from 'knex';

export type IpListKindName = 'collection' | 'allow' | 'block';

export interface IpListRow {
  id: string;
  name: string;
  kind: IpListKindName;
  entryCount: number;
  createdAt: Date;
  updatedAt: Date;
}

/** Into how many entries of the configuration a list is cut. */
const CHUNKS = 64;
const LIMIT_LOCK = 'select pg_advisory_xact_lock(1398162181, 1)';

const COLUMNS = `id, name, kind, entry_count as "entryCount", created_at as "createdAt", updated_at as "updatedAt"`;

/** The chunk of an entry, 0 to 63, by hash of its canonical text: nodes and revisions rely on it for good. */
export function chunkOf(cidr: string): number {
  return createHash('sha256').update(cidr).digest().readUInt32BE(0) % CHUNKS;
}

/** Lists by name, without entries. */
export async function ipListPage(sql: Knex, limit: number, offset: number): Promise<IpListRow[]> {
  const { rows } = await sql.raw(`select ${COLUMNS} from ip_list order by name limit ? offset ?`, [limit, offset]);
  return rows;
}

export async function ipListCount(sql: Knex): Promise<number> {
  const { rows } = await sql.raw('select count(*)::int as total from ip_list');
  return rows[0].total;
}

/** Names of all lists. */
export async function ipListNames(sql: Knex): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { name: string }[] }>('select name from ip_list');
  return rows.map(({ name }) => name);
}

/** Ids of all lists by their names. */
export async function ipListIds(sql: Knex): Promise<Map<string, string>> {
  const { rows } = await sql.raw<{ rows: { id: string; name: string }[] }>('select id, name from ip_list');
  return new Map(rows.map(({ id, name }) => [name, id]));
}

/** As {@link ipListIds} of those lists, which stay until the end of the transaction. */
export async function keepIpLists(sql: Knex, names: readonly string[]): Promise<Map<string, string>> {
  if (names.length === 0) return new Map();
  const { rows } = await sql.raw<{ rows: { id: string; name: string }[] }>(
    'select id, name from ip_list where name = any(?) order by id for key share',
    [names as never],
  );
  return new Map(rows.map(({ id, name }) => [name, id]));
}

export async function ipListById(sql: Knex, id: string): Promise<IpListRow | undefined> {
  const { rows } = await sql.raw(`select ${COLUMNS} from ip_list where id = ?`, [id]);
  return rows[0];
}

export async function lockIpList(sql: Knex, id: string): Promise<IpListRow | undefined> {
  const { rows } = await sql.raw(`select ${COLUMNS} from ip_list where id = ? for update`, [id]);
  return rows[0];
}

/** Entries in the database's text form, unsorted. */
export async function ipListEntries(sql: Knex, id: string): Promise<string[]> {
  const { rows } = await sql.raw<{ rows: { cidr: string }[] }>(
    'select cidr::text from ip_list_entry where ip_list_id = ?',
    [id],
  );
  return rows.map(({ cidr }) => cidr);
}

/** How many lists there are and how many entries they have; whoever asks is alone until the end of the transaction. */
export async function lockIpListTotals(sql: Knex): Promise<{ lists: number; entries: number }> {
  await sql.raw(LIMIT_LOCK);
  const { rows } = await sql.raw(
    'select count(*)::int as lists, coalesce(sum(entry_count), 0)::int as entries from ip_list',
  );
  return rows[0];
}

/** Throws a violation of ip_list_name_key for a name taken. */
export async function insertIpList(
  sql: Knex,
  list: { name: string; kind: IpListKindName; entryCount: number },
  now: Date,
): Promise<string> {
  const { rows } = await sql.raw(
    'insert into ip_list (name, kind, entry_count, created_at, updated_at) values (?, ?, ?, ?, ?) returning id',
    [list.name, list.kind, list.entryCount, now, now],
  );
  return rows[0].id;
}

export async function updateIpList(
  sql: Knex,
  id: string,
  { kind, entryCount, updatedAt }: Pick<IpListRow, 'kind' | 'entryCount' | 'updatedAt'>,
): Promise<void> {
  await sql.raw('update ip_list set kind = ?, entry_count = ?, updated_at = ? where id = ?', [
    kind,
    entryCount,
    updatedAt,
    id,
  ]);
}

export async function deleteIpList(sql: Knex, id: string): Promise<void> {
  await sql.raw('delete from ip_list where id = ?', [id]);
}

export async function addIpListEntries(sql: Knex, id: string, cidrs: readonly string[]): Promise<void> {
  if (cidrs.length === 0) return;
  await sql.raw(
    'insert into ip_list_entry (ip_list_id, chunk, cidr) select ?, chunk, cidr from unnest(?::smallint[], ?::cidr[]) e(chunk, cidr)',
    [id, cidrs.map(chunkOf) as never, cidrs as never],
  );
}

export async function removeIpListEntries(sql: Knex, id: string, cidrs: readonly string[]): Promise<void> {
  if (cidrs.length === 0) return;
  await sql.raw(
    `delete from ip_list_entry e using unnest(?::smallint[], ?::cidr[]) r(chunk, cidr)
      where e.ip_list_id = ? and e.chunk = r.chunk and e.cidr = r.cidr`,
    [cidrs.map(chunkOf) as never, cidrs as never, id],
  );
}
