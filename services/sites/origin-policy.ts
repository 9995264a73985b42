import { fail } from '../../contract/errors.ts';
import type { Origin } from '../../contract/resources/site-origins.ts';
import { originLiteral } from '../../contract/scalars/origin-address.ts';
import { isAllowed, specialRange } from '../../runtime/address-policy.ts';

/**
 * Throws ORIGIN_ADDRESS_FORBIDDEN for the first origin whose literal address is special-purpose and outside the allow
 * list. Host names are judged by the nodes, at every answer of their resolvers.
 */
export function assertOriginsAllowed(origins: readonly Origin[], allow: readonly string[]): void {
  for (const [index, origin] of origins.entries()) {
    const address = originLiteral(origin.address);
    const range = address === null ? null : specialRange(address);
    if (address === null || range === null || isAllowed(address, allow)) continue;
    fail('ORIGIN_ADDRESS_FORBIDDEN', { address, range, path: `/origins/${index}/address` });
  }
}
