// Who refers to an IP list by id. A feature that stores such references adds one line; the list cannot be deleted then,
// and its usage names them.
import type { Output } from '../../contract/procedure.ts';
import type { ipLists } from '../../contract/resources/ip-lists.ts';
import type { Runtime } from '../../runtime/runtime.ts';

type Sql = Runtime['pools']['api'];
export type IpListUser = Output<typeof ipLists.usage>['items'][number];

/** What a feature knows of its references to a list; both are answered from an index. */
export interface ReferenceSource {
  count(sql: Sql, ipListId: string): Promise<number>;
  /** Users in an order of their own that stays. */
  page(sql: Sql, ipListId: string, limit: number, offset: number): Promise<IpListUser[]>;
}

const SOURCES: readonly ReferenceSource[] = [];

/** Users of the list from `offset`, at most `limit`, source after source, and how many there are in all. */
export async function usersOfIpList(
  sql: Sql,
  ipListId: string,
  { limit, offset }: { limit: number; offset: number },
  sources: readonly ReferenceSource[] = SOURCES,
): Promise<{ items: IpListUser[]; total: number }> {
  const items: IpListUser[] = [];
  let total = 0;
  for (const source of sources) {
    const count = await source.count(sql, ipListId);
    const skipped = Math.max(0, offset - total);
    const wanted = limit - items.length;
    if (wanted > 0 && skipped < count) items.push(...(await source.page(sql, ipListId, wanted, skipped)));
    total += count;
  }
  return { items, total };
}
