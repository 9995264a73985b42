// Takes counts out of the data plane and onto the disk, each minute and once more before the agent ends. The data plane keeps a
// batch until the next call names it, and the agent names it only from what is on disk.
import type { Log } from '../../kit/log.ts';
import type { EdgeClient } from '../caddy/edge-client.ts';
import type { Spool } from './spool.ts';

/** Batches of former processes come one by one before that of the running minute. */
const MAX_DRAINS = 100;
const MINUTE_MS = 60_000;

export interface DrainOptions {
  client: Pick<EdgeClient, 'drainStats'>;
  spool: Spool;
  /** The console's clock minus this machine's, ms. */
  offsetMs: () => number;
  log: Log;
  /** This machine's clock, Unix ms. */
  now?: () => number;
}

/**
 * Stores what was counted until now. Throws when the data plane is silent or the disk refuses: then it stays where it is.
 */
export async function drainToSpool({ client, spool, offsetMs, log, now = Date.now }: DrainOptions): Promise<void> {
  const offset = Math.round(offsetMs());
  const minute = Math.floor((now() + offset) / MINUTE_MS) * 60;
  for (let drains = 0; drains < MAX_DRAINS; drains++) {
    const { sequence, minutes, gaps } = await client.drainStats(spool.drained, offset);
    if (sequence === 0n) {
      spool.idle(minute);
      return;
    }
    // What is counted while this runs belongs to this minute or a later one: then nothing before it is left.
    const last = minutes.some((row) => row.minute >= BigInt(minute));
    spool.add(sequence, { minutes, gaps }, last ? minute : undefined);
    if (last) return;
  }
  log.warn('data plane has more statistics than one batch, the rest follows', { drains: MAX_DRAINS });
}
