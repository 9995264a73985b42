import { fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { ipLists } from '../../contract/resources/ip-lists.ts';
import { normaliseCidrs } from '../../contract/scalars/cidr.ts';
import { type IpListRow, ipListById, ipListCount, ipListEntries, ipListPage } from '../../models/rules/ip-list.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { usersOfIpList } from './references.ts';

type Page = Output<typeof ipLists.list>;
export type IpListOutput = Output<typeof ipLists.get>;

export async function listIpLists({ pools }: Runtime, input: Input<typeof ipLists.list>): Promise<Page> {
  const { limit, offset } = pageOf(input);
  const [rows, total] = await Promise.all([ipListPage(pools.api, limit, offset), ipListCount(pools.api)]);
  return { items: rows.map(presentSummary), total };
}

/** Throws IP_LIST_NOT_FOUND. */
export async function getIpList({ pools }: Runtime, input: Input<typeof ipLists.get>): Promise<IpListOutput> {
  const row = (await ipListById(pools.api, input.id)) ?? fail('IP_LIST_NOT_FOUND');
  return presentIpList(row, normaliseCidrs(await ipListEntries(pools.api, row.id)).cidrs);
}

/** Throws IP_LIST_NOT_FOUND. */
export async function usageOfIpList(
  { pools }: Runtime,
  input: Input<typeof ipLists.usage>,
): Promise<Output<typeof ipLists.usage>> {
  const { id } = (await ipListById(pools.api, input.id)) ?? fail('IP_LIST_NOT_FOUND');
  return usersOfIpList(pools.api, id, pageOf(input));
}

export function presentIpList(row: IpListRow, entries: string[]): IpListOutput {
  return { ...presentSummary(row), entryCount: entries.length, entries };
}

function presentSummary({ createdAt, updatedAt, ...row }: IpListRow): Page['items'][number] {
  return { ...row, createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() };
}
