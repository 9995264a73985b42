// The agent's two feeds against a test console, without a data plane: what would be pushed is recorded.

import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { BanFeed, type BanFeedChange } from '../../../../agents/edge/bans/ban-feed.ts';
import { type BanRow, BanStore } from '../../../../agents/edge/bans/ban-store.ts';
import { ConfigFeed } from '../../../../agents/edge/config/config-feed.ts';
import { ConfigStore, type EntryObserver } from '../../../../agents/edge/config/config-store.ts';
import { ServerClock } from '../../../../agents/edge/lib/server-clock.ts';
import { decodeEvent, NodeChannel, type NodeIdentity } from '../../../../agents/kit/channel-client.ts';
import { keepWatching } from '../../../../agents/kit/keep-watching.ts';
import type { WatchEvent } from '../../../../proto/gen/svc/node/v1/node_pb.js';
import type { TestConsole } from './console.ts';
import { memoryLog } from './log.ts';

export const FEATURES = ['bans-v1', 'client-ip-v1', 'domains-v2', 'metrics-v1', 'unknown-host-v1'];

const able = (features: readonly string[]) => features.every((name) => FEATURES.includes(name));
const NO_OBSERVER: EntryObserver = { put: () => undefined, remove: () => undefined, clear: () => undefined };

export interface Feeds {
  config: ConfigStore;
  bans: BanStore;
  configFeed: ConfigFeed;
  banFeed: BanFeed;
  lines: string[];
  /** Revisions in the order in which they would be pushed; "reload" for a replaced journal. */
  pushed: string[];
  banChanges: (BanFeedChange | 'reload')[];
  /** Histories that took the place of the bans held, and what was held when that was told. */
  replacing: { epoch: bigint; kept: ReadonlyMap<string, BanRow>; held: number }[];
  onEvent(event: WatchEvent): void;
  connect(): void;
  close(): Promise<void>;
}

export async function testIdentity(testConsole: TestConsole): Promise<NodeIdentity> {
  const leaf = await testConsole.authority.clientLeaf('node-1');
  return {
    nodeId: 'node-1',
    clusterId: 'cluster-1',
    nodeName: 'edge one',
    serverUrl: testConsole.url,
    serverName: 'localhost',
    caSha256: testConsole.authority.pin,
    keyPem: leaf.keyPem,
    certificatePem: leaf.certificatePem,
    authorityPem: testConsole.authority.pem,
  };
}

export async function openFeeds(
  t: ExecutionContext,
  folder: string,
  testConsole: TestConsole,
  observer = NO_OBSERVER,
): Promise<Feeds> {
  const { log, lines } = memoryLog();
  const stopping = new AbortController();
  const identity = await testIdentity(testConsole);
  let channel = new NodeChannel(identity);
  const store = { nodeId: 'node-1', clusterId: 'cluster-1', log };
  const config = ConfigStore.open({ ...store, path: join(folder, 'config.journal'), observer, able });
  const bans = BanStore.open({ ...store, path: join(folder, 'bans.journal') });
  const clock = new ServerClock();
  const pushed: string[] = [];
  const banChanges: Feeds['banChanges'] = [];
  const replacing: Feeds['replacing'] = [];
  const current = (): NodeChannel | undefined => (stopping.signal.aborted ? undefined : channel);
  const configFeed = new ConfigFeed({
    store: config,
    log,
    channel: current,
    changed: (base, change) => pushed.push(`${base.revision}->${change.position.revision}`),
    replaced: () => pushed.push('reload'),
  });
  const banFeed = new BanFeed({
    store: bans,
    clock,
    log,
    channel: current,
    replacing: (epoch, kept) => replacing.push({ epoch, kept, held: bans.size }),
    changed: (change) => banChanges.push(change),
    replaced: () => banChanges.push('reload'),
  });
  const onEvent = (event: WatchEvent): void => {
    const decoded = decodeEvent(event);
    if (decoded.case === 'configDelta') configFeed.onDelta(decoded.value, performance.now());
    if (decoded.case === 'banBatch') banFeed.onBatch(decoded.value, performance.now());
    if (decoded.case !== 'target') return;
    clock.observe(decoded.value.serverTimeMs);
    if (decoded.value.config) configFeed.onTarget(decoded.value.config);
    if (decoded.value.bans) banFeed.onTarget(decoded.value.bans);
  };
  let watching: Promise<void> | undefined;
  let closed = false;
  const feeds: Feeds = {
    config,
    bans,
    configFeed,
    banFeed,
    lines,
    pushed,
    banChanges,
    replacing,
    onEvent,
    connect: () => {
      watching = keepWatching<WatchEvent>({
        log,
        signal: stopping.signal,
        open: (signal) =>
          channel.watch(
            {
              ...(configFeed.base ? { config: configFeed.base } : {}),
              ...(bans.position.epoch > 0n ? { bans: bans.position } : {}),
            },
            signal,
          ),
        onEvent,
        connected: () => {
          configFeed.onConnected();
          banFeed.onConnected();
        },
        disconnected: () => {
          channel.close();
          channel = new NodeChannel(identity);
        },
        delay: () => 20,
      });
    },
    close: async () => {
      if (closed) return;
      closed = true;
      stopping.abort();
      channel.close();
      await watching;
      await Promise.all([configFeed.stop(), banFeed.stop()]);
      await Promise.all([config.close(), bans.close()]);
    },
  };
  t.teardown(() => feeds.close());
  return feeds;
}
