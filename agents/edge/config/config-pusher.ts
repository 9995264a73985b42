// Brings the configuration into one data plane: pushes changes, and has Caddy read the journal when they do not follow each other.
import type { Capability } from '../../../contract/capabilities.ts';
import type { Entry, EntryKey } from '../../../proto/gen/svc/config/v1/entry_pb.js';
import type { GetStatusResponse } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import type { ConfigPosition, FailedEntry } from '../../../proto/gen/svc/node/v1/config_pb.js';
import type { Log } from '../../kit/log.ts';
import type { DataPlane, FollowedFeed } from '../caddy/data-plane.ts';
import { type Change, Pusher } from '../caddy/pusher.ts';
import type { EntryName } from '../lib/part.ts';
import { type ConfigChange, type ConfigStore, samePosition } from './config-store.ts';
import { entryKey } from './entry.ts';

const HTTPS: Capability = 'https-v1';

interface ConfigPush extends Change<ConfigPosition> {
  upserts: Map<string, Entry>;
  deletes: Map<string, EntryKey>;
  /** Among the upserts: what came before the node served its site. */
  unserved: Map<string, EntryKey>;
}

interface ConfigAnswer {
  position: ConfigPosition;
  failed: FailedEntry[];
}

export interface ConfigPusherOptions {
  dataPlane: DataPlane;
  store: ConfigStore;
  log: Log;
  /** Caddy runs this configuration now. */
  applied: (position: ConfigPosition, failed: FailedEntry[], micros: number) => void;
  /** Write the journal anew, because Caddy cannot read it; reject when that is not possible now. */
  repair: () => Promise<void>;
  /** Resolves when the files are there that these entries (undefined: any) name, as far as they come soon; undefined: now. */
  ready?: (entries: readonly EntryName[] | undefined) => Promise<void> | undefined;
}

export class ConfigPusher implements FollowedFeed {
  readonly name = 'config';
  readonly pusher: Pusher<ConfigPosition, ConfigPush, ConfigAnswer>;
  private readonly options: ConfigPusherOptions;

  constructor(options: ConfigPusherOptions) {
    this.options = options;
    const { dataPlane, store, log } = options;
    const { client } = dataPlane;
    this.pusher = new Pusher<ConfigPosition, ConfigPush, ConfigAnswer>({
      name: this.name,
      log,
      position: () => store.position,
      same: samePosition,
      unwritten: (position) => {
        const change = store.changeSince(position);
        return change && configPush(position, change, performance.now());
      },
      merge: mergeConfig,
      push: async ({ base, target, ...change }) =>
        configAnswer(
          await client.applyConfig({
            base,
            target,
            upserts: [...change.upserts.values()],
            deletes: [...change.deletes.values()],
            unserved: [...change.unserved.values()],
          }),
        ),
      reload: async () => configAnswer(await client.reloadConfig()),
      ready: (changes) => options.ready?.(changes?.flatMap(({ upserts }) => [...upserts.values()])),
      refresh: async () => {
        if (!dataPlane.status?.capabilities.includes(HTTPS)) return undefined;
        const { position, failed } = await client.readCertificates();
        return position && { position, failed };
      },
      repair: options.repair,
      isAhead: (position) => this.isAhead(position),
      positionOf: (answer) => answer.position,
      applied: (answer, micros) => this.applied(answer, micros),
      failed: (problem, unavailable) => dataPlane.failed(this, problem, unavailable),
    });
    // An agent before this one may have died with what it wrote into the pack, and told nobody.
    this.pusher.requestRefresh();
    dataPlane.follow(this);
  }

  push(base: ConfigPosition, change: ConfigChange, receivedAt: number): void {
    this.pusher.enqueue(configPush(base, change, receivedAt));
  }

  reload(): void {
    this.pusher.requestReload();
  }

  /** The pack of certificates grew, or is another file. */
  readCertificates(): void {
    this.pusher.requestRefresh();
  }

  /**
   * All keys whose newest version does not compile, each with the hash of the body that runs instead (empty: none), and the
   * position of which that is true; undefined when Caddy changed meanwhile. Throws EdgeError.
   */
  async failing(): Promise<{ position: ConfigPosition; running: Map<string, Uint8Array> } | undefined> {
    const running = new Map<string, Uint8Array>();
    let position: ConfigPosition | undefined;
    let after: EntryKey | undefined;
    for (;;) {
      const page = await this.options.dataPlane.client.listFailing(after);
      if (!page.position || (position && !samePosition(position, page.position))) return undefined;
      position = page.position;
      for (const { key, runningHash } of page.entries) if (key) running.set(entryKey(key.kind, key.id), runningHash);
      after = page.entries.at(-1)?.key;
      if (!page.more || !after) return { position, running };
    }
  }

  compare(status: GetStatusResponse, isNewProcess: boolean): void {
    if (!status.config) return;
    const same = samePosition(status.config, this.options.store.position);
    if (same && (isNewProcess || this.pusher.isDown))
      this.applied({ position: status.config, failed: status.failed }, 0);
    if (!same || this.pusher.isDown) this.pusher.reconcile(status.config);
  }

  private applied({ position, failed }: ConfigAnswer, micros: number): void {
    this.options.dataPlane.accepted(this);
    this.options.applied(position, failed, micros);
  }

  /** A journal that lost its end, or was set aside, is no reason to take back what Caddy runs. */
  private isAhead(position: ConfigPosition): boolean {
    const { store } = this.options;
    const stored = store.position;
    if (stored.revision === 0n) return position.revision > 0n && !store.isOfAnotherCluster;
    return position.epoch === stored.epoch && position.revision > stored.revision;
  }
}

function configPush(base: ConfigPosition, change: ConfigChange, receivedAt: number): ConfigPush {
  return {
    base,
    target: change.position,
    receivedAt,
    upserts: new Map(change.upserts.map((entry) => [entryKey(entry.kind, entry.id), entry])),
    deletes: new Map(change.deletes.map((key) => [entryKey(key.kind, key.id), key])),
    unserved: new Map((change.unserved ?? []).map((key) => [entryKey(key.kind, key.id), key])),
  };
}

function configAnswer(answer: { position?: ConfigPosition | undefined; failed: FailedEntry[] }): ConfigAnswer {
  if (!answer.position) throw new Error('the data plane returned no position');
  return { position: answer.position, failed: answer.failed };
}

/** One change with the final state of every key. */
function mergeConfig(changes: readonly ConfigPush[]): ConfigPush {
  const merged: ConfigPush = {
    base: changes[0]!.base,
    target: changes.at(-1)!.target,
    receivedAt: changes[0]!.receivedAt,
    upserts: new Map(),
    deletes: new Map(),
    unserved: new Map(),
  };
  for (const change of changes) {
    for (const [key, name] of change.deletes) {
      merged.upserts.delete(key);
      merged.unserved.delete(key);
      merged.deletes.set(key, name);
    }
    for (const [key, entry] of change.upserts) {
      merged.deletes.delete(key);
      merged.upserts.set(key, entry);
      merged.unserved.delete(key);
    }
    for (const [key, name] of change.unserved) merged.unserved.set(key, name);
  }
  return merged;
}
