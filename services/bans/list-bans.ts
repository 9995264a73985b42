import { fail } from '../../contract/errors.ts';
import { pageOf } from '../../contract/page.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { bans } from '../../contract/resources/bans.ts';
import { formatCidr, parseCidr } from '../../contract/scalars/cidr.ts';
import { banCount, banPage } from '../../models/bans/ban-list.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { presentBan } from './present-ban.ts';

/** Active bans, newest first. Throws BAN_INVALID_CIDR. */
export async function listBans({ pools }: Runtime, input: Input<typeof bans.list>): Promise<Output<typeof bans.list>> {
  const { address, ...filter } = input;
  const cidr = address === undefined ? undefined : formatCidr(parseCidr(address) ?? fail('BAN_INVALID_CIDR'));
  const { limit, offset } = pageOf(input);
  const now = new Date();
  const [rows, total] = await Promise.all([
    banPage(pools.api, { ...filter, cidr }, now, limit, offset),
    banCount(pools.api, { ...filter, cidr }, now),
  ]);
  return { items: rows.map(presentBan), total };
}
