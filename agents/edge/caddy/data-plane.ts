// Caddy as the agent sees it: who it is, whether it serves, where it is in both feeds. Every five seconds (twice a second
// while it does not answer) its status is compared with the journals; only a difference is pushed. What it refuses is tried
// again with back-off.
import { create } from '@bufbuild/protobuf';
import type { Capability } from '../../../contract/capabilities.ts';
import type { Entry, EntryKey } from '../../../proto/gen/svc/config/v1/entry_pb.js';
import { type BanState, BanStateSchema, type GetStatusResponse } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import type { BanPosition, OwnBanLift } from '../../../proto/gen/svc/node/v1/bans_pb.js';
import type { ConfigPosition, FailedEntry } from '../../../proto/gen/svc/node/v1/config_pb.js';
import { errorText, type Log } from '../../kit/log.ts';
import type { BanFeedChange } from '../bans/ban-feed.ts';
import type { BanRow, BanStore } from '../bans/ban-store.ts';
import { HTTPS_KIND } from '../certificates/certificate-uses.ts';
import { type ConfigChange, type ConfigStore, samePosition } from '../config/config-store.ts';
import { entryKey } from '../config/entry.ts';
import type { EdgeClient } from './edge-client.ts';
import { type Change, Pusher } from './pusher.ts';

const HTTPS: Capability = 'https-v1';
const POLL_MS = 5000;
/** A process that comes back lacks what the disk did not take until it has answered. */
const POLL_DOWN_MS = 100;
const RETRY_UNAPPLIED_MS = 60_000;
const MAX_LIFTS = 10_000;

interface ConfigPush extends Change<ConfigPosition> {
  upserts: Map<string, Entry>;
  deletes: Map<string, EntryKey>;
  /** Among the upserts: what came before the node served its site. */
  unserved: Map<string, EntryKey>;
}

interface BanPush extends Change<BanPosition> {
  upserts: Map<string, BanRow>;
  removed: Set<string>;
}

interface ConfigAnswer {
  position: ConfigPosition;
  failed: FailedEntry[];
}

export interface DataPlaneOptions {
  client: EdgeClient;
  config: ConfigStore;
  bans: BanStore;
  log: Log;
  /** Caddy runs this configuration now. */
  configApplied: (position: ConfigPosition, failed: FailedEntry[], micros: number) => void;
  /** Caddy enforces the bans up to this state now. */
  bansApplied: (state: BanState, micros: number) => void;
  /** Write a journal anew that Caddy cannot read; reject when that is not possible now. */
  repairConfig: () => Promise<void>;
  repairBans: () => Promise<void>;
  /** Health or instance changed. */
  changed: () => void;
  /** Resolves when the certificates that changes name are there, as far as they come soon; undefined: now. */
  ready?: (siteIds: readonly string[] | undefined) => Promise<void> | undefined;
  /** Caddy said how it is. */
  answered: (status: GetStatusResponse) => void;
}

export class DataPlane {
  private readonly options: DataPlaneOptions;
  private readonly log: Log;
  private readonly config: Pusher<ConfigPosition, ConfigPush, ConfigAnswer>;
  private readonly bans: Pusher<BanPosition, BanPush, BanState>;
  private timer: NodeJS.Timeout | undefined;
  private stopped = false;
  private polling = false;
  private lastRetry = performance.now();
  private unapplied = 0n;
  /** Lifts of own bans that Caddy has not confirmed. */
  private lifts = new Set<OwnBanLift>();
  /** The process that answered last. */
  private instanceId = '';
  /** The last status received; undefined while Caddy does not answer. */
  status: GetStatusResponse | undefined;
  private problem = 'the data plane has not answered yet';
  /** What was refused last, by feed; "" after a success. */
  private readonly refused = { config: '', bans: '' };

  constructor(options: DataPlaneOptions) {
    this.options = options;
    this.log = options.log;
    const { client } = options;
    const failed = (feed: 'config' | 'bans') => (problem: string, unavailable: boolean) =>
      this.pushFailed(feed, problem, unavailable);
    this.config = new Pusher<ConfigPosition, ConfigPush, ConfigAnswer>({
      name: 'config',
      log: options.log,
      held: () => options.config.position,
      same: samePosition,
      unwritten: (position) => {
        const change = options.config.changeSince(position);
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
      ready: (changes) => options.ready?.(changes && sitesOfHttps(changes)),
      refresh: async () => {
        if (!this.status?.capabilities.includes(HTTPS)) return undefined;
        const { position, failed } = await client.readCertificates();
        return position && { position, failed };
      },
      repair: options.repairConfig,
      isAhead: (position) => this.isConfigAhead(position),
      positionOf: (answer) => answer.position,
      applied: (answer, micros) => this.configApplied(answer, micros),
      failed: failed('config'),
    });
    // An agent before this one may have died with what it wrote into the pack, and told nobody.
    this.config.requestRefresh();
    this.bans = new Pusher<BanPosition, BanPush, BanState>({
      name: 'bans',
      log: options.log,
      held: () => options.bans.position,
      same: (left, right) => left.epoch === right.epoch && left.sequence === right.sequence,
      unwritten: (position) => {
        const change = options.bans.changeSince(position);
        return change && banPush(position, change, performance.now());
      },
      merge: mergeBans,
      push: async ({ base, target, upserts, removed }) => {
        const messages = [...upserts.values()].map((row) => options.bans.toMessage(row));
        const liftedOwn = [...this.lifts];
        const state = banState(
          await client.applyBans({ base, target, upserts: messages, removedIds: [...removed], liftedOwn }),
        );
        for (const lift of liftedOwn) this.lifts.delete(lift);
        return state;
      },
      reload: async () => banState(await client.reloadBans()),
      repair: options.repairBans,
      isAhead: (position) => this.areBansAhead(position),
      positionOf: (state) => state.position!,
      applied: (state, micros) => this.bansApplied(state, micros),
      failed: failed('bans'),
    });
  }

  get healthy(): boolean {
    return this.status?.serving === true && this.failure === '';
  }

  /** Why Caddy is not healthy; "" when it is. */
  get message(): string {
    if (this.failure !== '') return this.failure;
    if (this.status?.serving === false) return 'the data plane has no open listeners';
    return this.status?.warnings[0] ?? '';
  }

  private get failure(): string {
    return this.problem || this.refused.config || this.refused.bans;
  }

  start(): void {
    void this.poll();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    this.options.client.close();
  }

  pushConfig(base: ConfigPosition, change: ConfigChange, receivedAt: number): void {
    this.config.enqueue(configPush(base, change, receivedAt));
  }

  reloadConfig(): void {
    this.config.requestReload();
  }

  /** The pack of certificates grew, or is another file. */
  readCertificates(): void {
    this.config.requestRefresh();
  }

  pushBans(change: BanFeedChange, receivedAt: number): void {
    this.noteLifts(change.liftedOwn);
    this.bans.enqueue(banPush(change.base, change, receivedAt));
  }

  /** Lifts own bans that Caddy may hold again. */
  liftOwn(lifts: readonly OwnBanLift[]): void {
    this.noteLifts(lifts);
    this.pushLifts();
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
      const page = await this.options.client.listFailing(after);
      if (!page.position || (position && !samePosition(position, page.position))) return undefined;
      position = page.position;
      for (const { key, runningHash } of page.entries) if (key) running.set(entryKey(key.kind, key.id), runningHash);
      after = page.entries.at(-1)?.key;
      if (!page.more || !after) return { position, running };
    }
  }

  /** Asks Caddy at once how it is. */
  check(): void {
    this.schedule(0);
  }

  private noteLifts(lifts: readonly OwnBanLift[]): void {
    for (const lift of lifts) this.lifts.add(lift);
    for (const lift of this.lifts) {
      if (this.lifts.size <= MAX_LIFTS) break;
      this.lifts.delete(lift);
    }
  }

  /** A change of nothing but lifts: the journal that Caddy reads does not have them. */
  private pushLifts(): void {
    if (this.lifts.size === 0 || !this.bans.idle) return;
    const { position } = this.options.bans;
    if (this.status?.bans?.position && this.areBansAhead(this.status.bans.position)) return;
    this.bans.enqueue({
      base: position,
      target: position,
      receivedAt: performance.now(),
      upserts: new Map(),
      removed: new Set(),
    });
  }

  reloadBans(): void {
    this.bans.requestReload();
  }

  private configApplied({ position, failed }: ConfigAnswer, micros: number): void {
    this.refused.config = '';
    this.options.configApplied(position, failed, micros);
  }

  private bansApplied(state: BanState, micros: number): void {
    this.refused.bans = '';
    this.unapplied = state.unapplied;
    this.options.bansApplied(state, micros);
  }

  private pushFailed(feed: 'config' | 'bans', problem: string, unavailable: boolean): void {
    this.log.warn('data plane did not take a change', { feed, problem });
    this.refused[feed] = problem;
    if (unavailable) this.status = undefined;
    this.options.changed();
    this.schedule(this.pollDelay());
  }

  /** After a failure as soon as it may be tried again; quickly while a process starts. */
  private pollDelay(): number {
    if (this.status === undefined || !this.status.serving) return POLL_DOWN_MS;
    const waiting = [this.config, this.bans].filter((pusher) => pusher.isDown).map((pusher) => pusher.retryInMs);
    if (waiting.length === 0) return POLL_MS;
    return Math.min(POLL_MS, Math.max(POLL_DOWN_MS, ...waiting));
  }

  /** A journal that lost its end, or was set aside, is no reason to take back what Caddy runs. */
  private isConfigAhead(position: ConfigPosition): boolean {
    const { config } = this.options;
    const held = config.position;
    if (held.revision === 0n) return position.revision > 0n && !config.isOfAnotherCluster;
    return position.epoch === held.epoch && position.revision > held.revision;
  }

  private areBansAhead(position: BanPosition): boolean {
    const { bans } = this.options;
    const held = bans.position;
    if (held.epoch === 0n) return position.epoch > 0n && !bans.isOfAnotherCluster;
    return position.epoch === held.epoch && position.sequence > held.sequence;
  }

  private schedule(delayMs: number): void {
    clearTimeout(this.timer);
    if (!this.stopped) this.timer = setTimeout(() => void this.poll(), delayMs);
  }

  private async poll(): Promise<void> {
    if (this.polling) return;
    this.polling = true;
    const activity = [this.config.activity, this.bans.activity];
    try {
      const status = await this.options.client.getStatus();
      const newInstance = status.instanceId !== this.status?.instanceId;
      const wasHealthy = this.healthy;
      this.status = status;
      this.problem = '';
      if (newInstance) {
        this.log.info('data plane answers', {
          instance: status.instanceId,
          version: status.version,
          warnings: status.warnings,
        });
      }
      if (status.instanceId !== this.instanceId) {
        this.instanceId = status.instanceId;
        this.refused.config = '';
        this.refused.bans = '';
        this.config.forgive();
        this.bans.forgive();
      }
      if (activity[0] === this.config.activity) this.compareConfig(status, newInstance);
      if (activity[1] === this.bans.activity) this.compareBans(status, newInstance);
      this.options.answered(status);
      this.pushLifts();
      await this.retryUnapplied();
      if (newInstance || wasHealthy !== this.healthy) this.options.changed();
      this.schedule(this.pollDelay());
    } catch (error) {
      this.down(errorText(error));
      this.schedule(POLL_DOWN_MS);
    } finally {
      this.polling = false;
    }
  }

  private compareConfig(status: GetStatusResponse, newInstance: boolean): void {
    if (!status.config || !(newInstance || this.config.isDown || this.config.idle)) return;
    const same = samePosition(status.config, this.options.config.position);
    if (same && (newInstance || this.config.isDown))
      this.configApplied({ position: status.config, failed: status.failed }, 0);
    if (!same || this.config.isDown) this.config.reconcile(status.config);
  }

  private compareBans(status: GetStatusResponse, newInstance: boolean): void {
    const state = status.bans ?? create(BanStateSchema);
    if (!state.position || !(newInstance || this.bans.isDown || this.bans.idle)) return;
    const { epoch, sequence } = this.options.bans.position;
    const same = state.position.epoch === epoch && state.position.sequence === sequence;
    if (same && (newInstance || this.bans.isDown)) this.bansApplied(state, 0);
    if (!same || this.bans.isDown) this.bans.reconcile(state.position);
  }

  /** Manual bans that found no room are tried again each minute. */
  private async retryUnapplied(): Promise<void> {
    if (this.unapplied === 0n || !this.bans.idle || performance.now() - this.lastRetry < RETRY_UNAPPLIED_MS) return;
    this.lastRetry = performance.now();
    this.bansApplied(banState(await this.options.client.retryBans()), 0);
  }

  private down(problem: string): void {
    if (this.status !== undefined) this.log.warn('data plane does not answer', { problem });
    else if (this.problem !== problem) this.log.info('waiting for the data plane', { problem });
    const changed = this.status !== undefined;
    this.status = undefined;
    this.problem = problem;
    this.config.markDown();
    this.bans.markDown();
    if (changed) this.options.changed();
  }
}

function sitesOfHttps(changes: readonly ConfigPush[]): string[] {
  return changes.flatMap(({ upserts }) =>
    [...upserts.values()].filter(({ kind }) => kind === HTTPS_KIND).map(({ id }) => id),
  );
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

function banPush(
  base: BanPosition,
  change: Pick<BanFeedChange, 'target' | 'upserts' | 'removedIds'>,
  receivedAt: number,
): BanPush {
  return {
    base,
    target: change.target,
    receivedAt,
    upserts: new Map(change.upserts.map((row) => [row.id, row])),
    removed: new Set(change.removedIds),
  };
}

function configAnswer(answer: { position?: ConfigPosition | undefined; failed: FailedEntry[] }): ConfigAnswer {
  if (!answer.position) throw new Error('the data plane answered without a position');
  return { position: answer.position, failed: answer.failed };
}

function banState(answer: { state?: BanState | undefined }): BanState {
  if (!answer.state?.position) throw new Error('the data plane answered without a ban position');
  return answer.state;
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

function mergeBans(changes: readonly BanPush[]): BanPush {
  const merged: BanPush = {
    base: changes[0]!.base,
    target: changes.at(-1)!.target,
    receivedAt: changes[0]!.receivedAt,
    upserts: new Map(),
    removed: new Set(),
  };
  for (const change of changes) {
    for (const id of change.removed) {
      merged.upserts.delete(id);
      merged.removed.add(id);
    }
    for (const [id, row] of change.upserts) {
      merged.removed.delete(id);
      merged.upserts.set(id, row);
    }
  }
  return merged;
}
