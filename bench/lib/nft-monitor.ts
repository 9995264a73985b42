// When elements appeared in nftables sets, from the kernel's own notifications.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { clockMs } from '../fleet/fleet.ts';

export interface NftMonitor {
  /** Unix ms at which the element with this address appeared; waits for it. */
  added(address: string): Promise<number>;
  stop(): void;
}

const WAIT_MS = 30_000;

export async function startNftMonitor(): Promise<NftMonitor> {
  const child = spawn('nft', ['monitor', 'new', 'elements'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const seen = new Map<string, number>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    const now = clockMs();
    for (const [address] of line.matchAll(/[0-9a-f:.]+[0-9a-f](?= (?:timeout|expires))/g)) {
      if (!seen.has(address)) seen.set(address, now);
    }
  });
  // The monitor says nothing when it is ready.
  await new Promise((resolve) => setTimeout(resolve, 500));
  return {
    added: async (address) => {
      const deadline = clockMs() + WAIT_MS;
      for (;;) {
        const at = seen.get(address);
        if (at !== undefined) return at;
        if (clockMs() > deadline) throw new Error(`${address} did not reach the kernel`);
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
    },
    stop: () => void child.kill(),
  };
}
