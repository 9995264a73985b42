// Global bans from everywhere: the console's, and behind them the node's own.
import type { BanStore } from '../bans/ban-store.ts';
import type { Protection } from '../security/protection.ts';
import type { BanSource } from './kernel-bans.ts';

export function allGlobalBans(
  bans: Pick<BanStore, 'ordered' | 'globalRemainingMs'>,
  own: Pick<Protection, 'globalCidrs' | 'globalRemainingMs'>,
): BanSource {
  return {
    orderedGlobalCidrs: () => {
      const console = bans.ordered().flatMap((row) => (row.siteId === '' ? [row.cidr] : []));
      return [...new Set([...console, ...own.globalCidrs()])];
    },
    remainingMs: (cidr) => {
      const remaining = [bans.globalRemainingMs(cidr), own.globalRemainingMs(cidr)].filter((ms) => ms !== undefined);
      return remaining.length === 0 ? undefined : Math.max(...remaining);
    },
  };
}
