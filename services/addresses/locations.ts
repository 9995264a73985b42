import { badField } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { AddressLocation, addresses } from '../../contract/resources/addresses.ts';
import { formatAddress, parseCidr } from '../../contract/scalars/cidr.ts';
import { locate } from '../../runtime/geoip.ts';
import type { Runtime } from '../../runtime/runtime.ts';

type Located = Pick<Runtime, 'env' | 'log'>;

/** What the databases tell of one address. */
export async function locationOf(runtime: Located, address: string): Promise<AddressLocation> {
  const { country, asnum, asName } = await locate(runtime, address);
  return { country: country || null, asn: asnum || null, asName: asName || null };
}

/** Throws BAD_REQUEST for what is no address. */
export async function locateAddresses(
  runtime: Located,
  input: Input<typeof addresses.locate>,
): Promise<Output<typeof addresses.locate>> {
  const { geoipCountry, geoipAsn } = runtime.env;
  const parsed = input.addresses.map(
    (address, index) =>
      parseCidr(address) ?? badField(`/addresses/${index}`, 'cidr', { accepted: 'an IPv4 or IPv6 address or range' }),
  );
  const found = await Promise.all(parsed.map((range) => locationOf(runtime, formatAddress(range))));
  return {
    available: geoipCountry !== null || geoipAsn !== null,
    locations: found
      .map((location, index) => ({ address: input.addresses[index]!, ...location }))
      .filter(({ country, asn }) => country !== null || asn !== null),
  };
}
