// Who answers for names over HTTP.
import { type ServedName, servedNames } from '../../../models/certificates/acme-order.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { OrderFailed } from './failure.ts';

const NAMES_TOLD = 20;

/** Each of the names with its cluster. Throws OrderFailed where no site has one. */
export async function allServed({ pools }: Runtime, names: readonly string[]): Promise<ServedName[]> {
  const served = await servedNames(pools.api, names);
  const has = new Set(served.map(({ name }) => name));
  const unserved = names.filter((name) => !has.has(name));
  if (unserved.length > 0) throw new OrderFailed('http01_unserved', { names: unserved.slice(0, NAMES_TOLD) });
  return served;
}
