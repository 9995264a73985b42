// Carries request counters from Caddy to the console in two phases, so that each batch counts exactly once: Caddy keeps a
// batch until it is acknowledged, and the number under which the console knows it is on disk before it is sent.

import type { NodeChannel } from '../../kit/channel-client.ts';
import { readTextIfPresent, writeFileAtomic } from '../../kit/files.ts';
import { errorText, type Log } from '../../kit/log.ts';
import type { EdgeClient } from '../caddy/edge-client.ts';

const INTERVAL_MS = 60_000;
const MAX_BATCHES_AT_ONCE = 50;
/** Minutes in one report; the console takes 10,000. */
const MAX_MINUTES = 5000;

interface Ledger {
  /** Number of the last batch given to the console, decimal. */
  reported: string;
  /** The batch of Caddy that got this number. */
  instance: string;
  sequence: string;
}

export class StatsReporter {
  private readonly path: string;
  private readonly client: EdgeClient;
  private readonly channel: () => NodeChannel | undefined;
  private readonly instance: () => string | undefined;
  private readonly log: Log;
  private ledger: Ledger;
  private acknowledged = { instance: '', sequence: 0n };
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> | undefined;

  constructor(options: {
    path: string;
    client: EdgeClient;
    channel: () => NodeChannel | undefined;
    instance: () => string | undefined;
    log: Log;
  }) {
    this.path = options.path;
    this.client = options.client;
    this.channel = options.channel;
    this.instance = options.instance;
    this.log = options.log;
    this.ledger = readLedger(options.path);
  }

  start(): void {
    this.timer = setInterval(() => this.report(), INTERVAL_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.running;
  }

  /** Reports what there is; one run at a time. */
  report(): Promise<void> {
    this.running ??= this.run()
      .catch((error) => this.log.warn('statistics not reported, they are kept', { error: errorText(error) }))
      .finally(() => {
        this.running = undefined;
      });
    return this.running;
  }

  private async run(): Promise<void> {
    for (let batch = 0; batch < MAX_BATCHES_AT_ONCE; batch++) {
      const channel = this.channel();
      const instance = this.instance();
      if (!channel || instance === undefined) return;
      const acknowledged = this.acknowledged.instance === instance ? this.acknowledged.sequence : 0n;
      const { sequence, minutes } = await this.client.drainStats(acknowledged);
      if (sequence === 0n || minutes.length === 0) return;
      const parts = Math.ceil(minutes.length / MAX_MINUTES);
      const first = this.firstNumber(instance, sequence, BigInt(parts));
      for (let part = 0; part < parts; part++) {
        const rows = minutes.slice(part * MAX_MINUTES, (part + 1) * MAX_MINUTES);
        await channel.reportStats({ sequence: first + BigInt(part), minutes: rows });
      }
      this.acknowledged = { instance, sequence };
    }
  }

  /**
   * The console's number of the first part of a batch: the same for a batch handed out again, larger than all before for a
   * new one. A batch never changes, so its parts do not either.
   */
  private firstNumber(instance: string, sequence: bigint, parts: bigint): bigint {
    const { ledger } = this;
    if (ledger.instance !== instance || ledger.sequence !== sequence.toString()) {
      // Starting from the time keeps numbers rising even when the file was lost.
      const now = BigInt(Date.now());
      const next = BigInt(ledger.reported) + 1n;
      const last = (next > now ? next : now) + parts - 1n;
      const updated = { instance, sequence: sequence.toString(), reported: last.toString() };
      writeFileAtomic(this.path, JSON.stringify(updated));
      this.ledger = updated;
    }
    return BigInt(this.ledger.reported) - parts + 1n;
  }
}

function readLedger(path: string): Ledger {
  try {
    const value = JSON.parse(readTextIfPresent(path) ?? '{}') as Partial<Ledger>;
    if (
      /^\d{1,19}$/.test(value.reported ?? '') &&
      typeof value.instance === 'string' &&
      /^\d{1,20}$/.test(value.sequence ?? '')
    ) {
      return value as Ledger;
    }
  } catch {
    // A broken file only costs the continuity of numbers, which the clock provides.
  }
  return { reported: '0', instance: '', sequence: '0' };
}
