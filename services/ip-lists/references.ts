// Who refers to an IP list by id. A feature that stores such references adds one line; the list cannot be deleted then.
import type { Runtime } from '../../mixins/runtime.ts';

type Sql = Runtime['pools']['api'];

/** Names of the first five users of the list, as people know them. */
export type ReferenceLookup = (sql: Sql, ipListId: string) => Promise<string[]>;

const LOOKUPS: readonly ReferenceLookup[] = [];
const SHOWN = 5;

/** At most five users of the list; none when it can be deleted. */
export async function usersOfIpList(
  sql: Sql,
  ipListId: string,
  lookups: readonly ReferenceLookup[] = LOOKUPS,
): Promise<string[]> {
  const users: string[] = [];
  for (const lookup of lookups) {
    if (users.length >= SHOWN) break;
    users.push(...(await lookup(sql, ipListId)));
  }
  return users.slice(0, SHOWN);
}
