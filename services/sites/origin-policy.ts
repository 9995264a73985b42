import { fail } from '../../contract/errors.ts';
import type { Output } from '../../contract/procedure.ts';
import type { Origin } from '../../contract/resources/site-origins.ts';
import type { sites } from '../../contract/resources/sites.ts';
import { originLiteral } from '../../contract/scalars/origin-address.ts';
import { isAllowed, specialRange } from '../../proto/address-policy.ts';

type LeftOut = Output<typeof sites.launch>['leftOutOrigins'];

/**
 * Throws ORIGIN_ADDRESS_FORBIDDEN for the first origin whose literal address is special-purpose and outside the allow
 * list. Host names are judged by the nodes, at every answer of their resolvers.
 */
export function assertOriginsAllowed(origins: readonly Origin[], allow: readonly string[]): void {
  for (const [index, origin] of origins.entries()) {
    const address = originLiteral(origin.address);
    const range = forbiddenRange(address, allow);
    if (range !== null) fail('ORIGIN_ADDRESS_FORBIDDEN', { address, range, path: `/origins/${index}/address` });
  }
}

/** Origins of a site that edges send no request to, and why; `chosen`: groups that rules choose. */
export function leftOutOrigins(
  origins: readonly Origin[],
  allow: readonly string[],
  chosen: ReadonlySet<string>,
): LeftOut {
  return origins.flatMap<LeftOut[number]>(({ address, port, group }) => {
    if (group !== '' && !chosen.has(group)) return [{ address, port, reason: 'group' }];
    if (forbiddenRange(originLiteral(address), allow) !== null) return [{ address, port, reason: 'address' }];
    return [];
  });
}

/** The special-purpose range of a literal address that nodes may not connect to; null for any other. */
function forbiddenRange(address: string | null, allow: readonly string[]): string | null {
  return address === null || isAllowed(address, allow) ? null : specialRange(address);
}
