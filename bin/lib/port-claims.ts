// Ports that launchers of this account picked and whose servers may not listen yet. A claim holds as long as its launcher
// runs, so two launchers that start in the same second pick different ports.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { takeLock } from './lock.ts';
import { isAlive, markOf, type ProcessMark } from './process-table.ts';

interface Claim extends ProcessMark {
  /** Of the data folder: one process can hold several. */
  owner: string;
}

/** Picking takes milliseconds a port; a machine can be slow. */
const WAIT_MS = 60_000;

export interface PortClaims {
  /** Whether another running launcher, or another data folder of this process, has claimed the port. */
  isClaimed(port: number): boolean;
  claim(port: number): void;
}

/** Runs `pick` while no other launcher of this account picks ports. */
export async function withPortClaims<T>(owner: string, pick: (claims: PortClaims) => Promise<T>): Promise<T> {
  const folder = join(tmpdir(), `edge-delivery-console-ports-${userInfo().uid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const mine = markOf(process.pid);
  if (!mine) throw new Error('this process has no start time');
  const file = (port: number) => join(folder, String(port));
  const lock = await takeLock(join(folder, 'lock'), 'A launcher that picks ports', { waitMs: WAIT_MS });
  try {
    return await pick({
      isClaimed(port) {
        const held = readClaim(file(port));
        return held !== undefined && isAlive(held) && !(held.pid === mine.pid && held.owner === owner);
      },
      claim: (port) => writeFileSync(file(port), JSON.stringify({ ...mine, owner } satisfies Claim), { mode: 0o600 }),
    });
  } finally {
    lock.release();
  }
}

function readClaim(file: string): Claim | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Claim;
  } catch {
    return undefined;
  }
}
