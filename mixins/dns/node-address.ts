// Addresses at which visitors reach a node, as people give them.
import { fail } from '../../contract/errors.ts';
import { formatAddress, overlaps, parseAddress, parseCidr } from '../../contract/scalars/cidr.ts';

/** Addresses that are no single machine's, or this one's own. */
const NO_NODE = ['0.0.0.0/8', '127.0.0.0/8', '224.0.0.0/3', '::/127', 'ff00::/8', 'fe80::/10'].map(
  (text) => parseCidr(text)!,
);

/** Its canonical text. `path` is a JSON pointer to it. Throws NODE_ADDRESS_INVALID. */
export function nodeAddressOf(text: string, path: string): string {
  const address = parseAddress(text.trim());
  if (address === null || NO_NODE.some((range) => overlaps(range, address))) {
    return fail('NODE_ADDRESS_INVALID', { address: text, path });
  }
  return formatAddress(address);
}
