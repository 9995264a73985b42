// Fetches keys of the cluster: at each connect, when the console says that they changed, and every 30 s while there are none.
import { Code, ConnectError } from '@connectrpc/connect';
import type { NodeChannel } from '../../kit/channel-client.ts';
import type { Log } from '../../kit/log.ts';
import { PullLoop } from '../lib/pull-loop.ts';
import type { KeyKind, Keys } from './key-kind.ts';
import type { KeyStore } from './key-store.ts';

const MISSING_MS = 30_000;
/** A node that holds keys holds the next one too: a thousand of them need not ask at the same moment. */
const SPREAD_MS = 2000;

export interface KeyFeedOptions<K extends Keys> {
  kind: KeyKind<K>;
  store: KeyStore<K>;
  log: Log;
  channel: () => NodeChannel | undefined;
  /** Other keys are stored now. */
  changed: () => void;
}

export class KeyFeed<K extends Keys> {
  private readonly options: KeyFeedOptions<K>;
  private readonly loop: PullLoop;

  constructor(options: KeyFeedOptions<K>) {
    this.options = options;
    this.loop = new PullLoop({
      name: options.kind.name,
      log: options.log,
      pull: (signal) => this.pull(signal),
      settled: () => undefined,
    });
  }

  get message(): string {
    return this.loop.problem === '' ? '' : `${this.options.kind.name} not fetched: ${this.loop.problem}`;
  }

  onConnected(): void {
    this.loop.hurry();
    this.request();
  }

  /** The console's keys have this version; 0 = it has none. */
  onVersion(version: bigint): void {
    if (version !== 0n && version !== this.options.store.version) this.request();
  }

  stop(): Promise<void> {
    return this.loop.stop();
  }

  private request(): void {
    this.loop.request(this.options.store.version === 0n ? 0 : Math.random() * SPREAD_MS);
  }

  private async pull(signal: AbortSignal): Promise<boolean> {
    const { store, log, changed, kind } = this.options;
    const keys = await this.fetch(signal);
    if (!keys || keys.version === 0n) {
      if (store.version === 0n) this.loop.request(MISSING_MS);
      return false;
    }
    if (store.replace(keys)) {
      log.info(`${kind.name} stored`, { version: keys.version });
      changed();
    }
    return false;
  }

  private async fetch(signal: AbortSignal): Promise<K | undefined> {
    const channel = this.options.channel();
    try {
      return channel && (await this.options.kind.fetch(channel, signal));
    } catch (error) {
      // A console of before there were any.
      if (error instanceof ConnectError && error.code === Code.Unimplemented) return undefined;
      throw error;
    }
  }
}
