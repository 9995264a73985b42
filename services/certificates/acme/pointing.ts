// Where names lead: visitors, and so authorities, must meet the nodes and nobody else.
import { formatAddress, parseAddress } from '../../../contract/scalars/cidr.ts';
import type { NameResolver } from './tools.ts';

/** Asks for addresses of names. */
export type AddressResolver = Pick<NameResolver, 'resolve4' | 'resolve6'>;

const NO_ADDRESS = new Set(['ENOTFOUND', 'ENODATA']);

/** `unresolved`: the name has no address or its servers do not say; `elsewhere`: one that is none of the given ones. */
export async function pointingOf(
  name: string,
  addresses: ReadonlySet<string>,
  resolver: AddressResolver,
): Promise<'ok' | 'unresolved' | 'elsewhere'> {
  const answers = await Promise.all([resolver.resolve4(name), resolver.resolve6(name)].map(settle));
  const found = answers.flatMap((answer) => answer ?? []);
  if (found.length === 0) return 'unresolved';
  return found.every((text) => addresses.has(canonical(text))) ? 'ok' : 'elsewhere';
}

async function settle(answer: Promise<string[]>): Promise<string[] | null> {
  try {
    return await answer;
  } catch (error) {
    return NO_ADDRESS.has((error as NodeJS.ErrnoException).code ?? '') ? [] : null;
  }
}

function canonical(text: string): string {
  const address = parseAddress(text);
  return address ? formatAddress(address) : text;
}
