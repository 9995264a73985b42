// Who refers to an IP list by id. The feature.ts of a service that stores such references says so; the list cannot be
// deleted then, and its usage names them.

import type { ServiceFeature } from '../../mixins/service-feature.ts';
import type { IpListUser, IpListUsers } from '../../models/rules/ip-list-user.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { FEATURES } from '../gen/features.ts';

type Sql = Runtime['pools']['api'];

const SOURCES: readonly IpListUsers[] = FEATURES.flatMap((feature: ServiceFeature) => feature.ipListUsers ?? []);

/** Users of the list from `offset`, at most `limit`, source after source, and how many there are in all. */
export async function usersOfIpList(
  sql: Sql,
  ipListId: string,
  { limit, offset }: { limit: number; offset: number },
  sources: readonly IpListUsers[] = SOURCES,
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
