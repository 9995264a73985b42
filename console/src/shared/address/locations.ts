// Country and network of addresses that are shown: asked once for each, and together for all that are shown at once.
import { type AddressLocation, addresses, MAX_LOCATED } from '@contract/resources/addresses.ts';
import { reactive } from 'vue';
import { call } from '@/shared/api/call.ts';

/** Those that were asked for last are kept. */
const KEPT = 2000;
const known = reactive(new Map<string, AddressLocation | null>());
const waiting = new Set<string>();
/** False: the console has no database, and never will while this page is open. */
let available = true;
let asking = false;

/** Where an address is, as far as it is known by now; it is asked for. */
export function locationOf(address: string): AddressLocation | null {
  const found = known.get(address);
  if (found === undefined && available) {
    waiting.add(address);
    if (!asking) {
      asking = true;
      queueMicrotask(() => void ask());
    }
  }
  return found ?? null;
}

async function ask(): Promise<void> {
  while (waiting.size > 0 && available) {
    const some = [...waiting].slice(0, MAX_LOCATED);
    for (const address of some) waiting.delete(address);
    try {
      const answer = await call(addresses.locate, { addresses: some });
      available = answer.available;
      const found = new Map(answer.locations.map(({ address, ...location }) => [address, location]));
      for (const address of some) known.set(address, found.get(address) ?? null);
    } catch {
      // Nothing depends on it. They are not asked for again on this page.
      for (const address of some) known.set(address, null);
    }
  }
  for (const address of [...known.keys()].slice(0, Math.max(0, known.size - KEPT))) known.delete(address);
  asking = false;
}
