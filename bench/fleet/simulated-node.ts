// One simulated node: a real identity, a real Watch stream, the cursor rules of the agent, no data plane.
import type { ClientHttp2Stream } from 'node:http2';
import { create } from '@bufbuild/protobuf';
import { judgeBatch, judgeDelta } from '../../agents/edge/config/delta-rules.ts';
import { appliedPause } from '../../agents/kit/applied-pause.ts';
import { backoffDelay } from '../../agents/kit/backoff.ts';
import { ReachedSteps } from '../../agents/kit/reached-steps.ts';
import { bucketOf } from '../../proto/entry-hash.ts';
import {
  type BanBatch,
  type BanPosition,
  BanPositionSchema,
  OwnBanSchema,
} from '../../proto/gen/svc/node/v1/bans_pb.js';
import { type AcmeBatch, type AcmePosition, AcmePositionSchema } from '../../proto/gen/svc/node/v1/certificates_pb.js';
import {
  type ConfigDelta,
  type ConfigPosition,
  ConfigPositionSchema,
  Track,
} from '../../proto/gen/svc/node/v1/config_pb.js';
import { type FeedBatch, type FeedPosition, FeedPositionSchema } from '../../proto/gen/svc/node/v1/feeds_pb.js';
import type { Target } from '../../proto/gen/svc/node/v1/node_pb.js';
import { CallRefused, Connection, type Identity } from './connection.ts';
import type { DecodedEvent } from './decode.ts';
import type { NodeStore } from './node-store.ts';

const RETRY_PULL_MS = 200;
const OWN_BAN_MS = 600_000;
const PURGES = 'purges';
/** Without them the console has no purges for a node. */
const PURGE_FEATURES = ['feeds-v1', 'purge-tag-v1'];

export interface NodeOptions {
  index: number;
  serverUrl: string;
  identity: Identity;
  store: NodeStore;
  features: readonly string[];
  heartbeatMs: number;
  /** Longest pause before it connects again. */
  reconnectMs: number;
  /** The first target is taken for what the node holds, and nothing before it is fetched. */
  joinsAtHead: boolean;
  decode(event: Buffer): DecodedEvent;
  onBans(index: number, sequence: bigint): void;
  onConfig(index: number, revision: bigint): void;
  /** It answers certificate authorities from this now. */
  onAcme(index: number, sequence: bigint): void;
  /** It serves nothing from before this purge now. */
  onPurges(index: number, sequence: bigint): void;
}

export class SimulatedNode {
  readonly index: number;
  readonly nodeId: string;
  readonly store: NodeStore;
  config: ConfigPosition = create(ConfigPositionSchema, { track: Track.STABLE });
  bans: BanPosition = create(BanPositionSchema);
  /** Version of the challenge keys it holds; 0 = none. */
  keysVersion = 0n;
  /** Version of the keys of session tickets it holds; 0 = none. */
  ticketKeysVersion = 0n;
  /** Where it is in what certificate authorities are answered; it keeps none of it. */
  acme: AcmePosition = create(AcmePositionSchema);
  /** Where it is in the purges; it keeps none of them. */
  purges: FeedPosition = create(FeedPositionSchema, { feed: PURGES });
  /** Counters for tests. */
  readonly counts = { pulls: 0, targets: 0, batches: 0, deltas: 0, connections: 0, reports: 0 };
  /** Why the console last ended or refused Watch; a connection that broke leaves it as it was. */
  watchRefusal: CallRefused | null = null;
  /** Why the console last refused a pull. */
  pullRefusal: CallRefused | null = null;
  readonly #options: NodeOptions;
  #connection: Connection | null = null;
  #stream: ClientHttp2Stream | null = null;
  #target: Target | null = null;
  #pulling = false;
  readonly #configSteps = new ReachedSteps();
  readonly #bansSteps = new ReachedSteps();
  readonly #purgesSteps = new ReachedSteps();
  readonly #followsPurges: boolean;
  #pullingPurges = false;
  #appliedTimer: NodeJS.Timeout | null = null;
  #heartbeatTimer: NodeJS.Timeout | null = null;
  #connectTimer: NodeJS.Timeout | null = null;
  #appliedSpreadMs = 0;
  #heartbeatMs: number;
  #holdsAcks = false;
  #stalled = false;
  #attempt = 0;
  #stopped = false;

  constructor(options: NodeOptions) {
    this.#options = options;
    this.index = options.index;
    this.#heartbeatMs = options.heartbeatMs;
    this.nodeId = options.identity.nodeId;
    this.store = options.store;
    this.#followsPurges = PURGE_FEATURES.every((name) => options.features.includes(name));
  }

  get connected(): boolean {
    return this.#stream !== null;
  }

  start(): void {
    this.#connect();
    this.#heartbeatTimer = setTimeout(() => this.#beat(), Math.random() * Math.min(2_000, this.#options.heartbeatMs));
  }

  stop(): void {
    this.#stopped = true;
    for (const timer of [this.#appliedTimer, this.#heartbeatTimer, this.#connectTimer]) if (timer) clearTimeout(timer);
    this.#connection?.destroy();
  }

  /** Stops or resumes to acknowledge what it applied. */
  holdAcks(hold: boolean): void {
    this.#holdsAcks = hold;
    if (!hold) this.#acknowledge();
  }

  /** Stops or resumes to read its stream; the connection stays. */
  stall(stalled: boolean): void {
    this.#stalled = stalled;
    if (stalled) this.#stream?.pause();
    else this.#stream?.resume();
  }

  /** Sends heartbeats this often from now on. */
  pace(heartbeatMs: number): void {
    this.#heartbeatMs = heartbeatMs;
    if (this.#heartbeatTimer) clearTimeout(this.#heartbeatTimer);
    this.#heartbeatTimer = setTimeout(() => this.#beat(), Math.random() * heartbeatMs);
  }

  /** Breaks the connection as a cut cable would; it connects again. */
  drop(): void {
    this.#connection?.destroy();
  }

  /** Forgets everything it holds, as a node with an empty disk. */
  reset(): void {
    this.config = create(ConfigPositionSchema, { track: Track.STABLE });
    this.bans = create(BanPositionSchema);
    this.store.replaceEntries([]);
    this.store.replaceBans([]);
    this.drop();
  }

  async heartbeat(): Promise<void> {
    const answer = await this.#connection!.call('heartbeat', {
      info: {
        hostname: `sim-${this.index}`,
        agentVersion: 'simulator',
        os: 'linux',
        arch: 'amd64',
        features: [...this.#options.features],
        ipAddresses: [],
      },
      config: this.config,
      bans: { position: this.bans, entries: BigInt(this.store.banCount()), capacity: 100_000n },
      dataPlaneHealthy: true,
      dataPlaneInstance: 'simulated',
      challengeKeysVersion: this.keysVersion,
      sessionTicketKeysVersion: this.ticketKeysVersion,
      ...(this.acme.epoch > 0n ? { acme: this.acme } : {}),
      ...this.#feeds(),
    });
    this.counts.reports += 1;
    this.#appliedSpreadMs = answer.appliedSpreadMs;
    if (answer.target) this.#aim(answer.target);
    if (answer.challengeKeysVersion !== this.keysVersion) await this.#fetchKeys();
    if (answer.sessionTicketKeysVersion !== this.ticketKeysVersion) await this.#fetchTicketKeys();
  }

  /** Reports that it banned a client of a site by itself, for ten minutes. */
  async reportBan(siteId: string, cidr: string): Promise<void> {
    const now = Date.now();
    const ban = create(OwnBanSchema, {
      siteId,
      cidr,
      createdAtMs: BigInt(now),
      expiresAtMs: BigInt(now + OWN_BAN_MS),
      reason: 'cc_ip_rate',
      metric: 'ip_qps',
      observed: 120n,
      threshold: 50n,
      windowSeconds: 10,
    });
    await this.#connection!.call('reportBans', { bans: [ban] });
  }

  #connect(): void {
    if (this.#stopped) return;
    this.counts.connections += 1;
    const { serverUrl, identity } = this.#options;
    const connection = new Connection(serverUrl, identity.authorityPem, identity);
    this.#connection = connection;
    const stream = connection.watch(
      {
        config: this.config,
        bans: this.bans,
        ...(this.acme.epoch > 0n ? { acme: this.acme } : {}),
        ...this.#feeds(),
      },
      (event) => this.#receive(event),
      (reason) => {
        this.#stream = null;
        if (reason) this.watchRefusal = reason;
        connection.destroy();
        const delay = backoffDelay(this.#attempt++, Math.random, 200, this.#options.reconnectMs);
        if (!this.#stopped) this.#connectTimer = setTimeout(() => this.#connect(), delay);
      },
    );
    this.#stream = stream;
    if (this.#stalled) stream.pause();
  }

  #receive(bytes: Buffer): void {
    this.#attempt = 0;
    const event = this.#options.decode(bytes);
    if (event.case === 'banBatch') this.#receiveBans(event.value);
    else if (event.case === 'configDelta') this.#receiveConfig(event.value);
    else if (event.case === 'acmeBatch') this.#receiveAcme(event.value);
    else if (event.case === 'feedBatch') this.#receiveFeed(event.value);
    else if (event.case === 'keysChanged') {
      if (event.value.version !== 0n) void this.#fetchKeys();
      if (event.value.sessionTicketVersion !== 0n) void this.#fetchTicketKeys();
    } else if (event.case === 'target') {
      this.counts.targets += 1;
      this.#aim(event.value);
    }
  }

  #receiveBans(batch: BanBatch): void {
    this.counts.batches += 1;
    const verdict = judgeBatch(this.bans, batch);
    if (verdict === 'apply') {
      this.store.changeBans(batch.upserts, batch.removedIds);
      this.#moveBans(batch.epoch, batch.to, batch.mark);
    } else if (verdict === 'pull') void this.#pull();
  }

  #receiveConfig(delta: ConfigDelta): void {
    this.counts.deltas += 1;
    const verdict = judgeDelta(this.config, delta);
    if (verdict === 'apply') this.#applyDelta(delta);
    else if (verdict === 'pull') void this.#pull();
  }

  /** As an agent does when keys changed; the next heartbeat tries again. */
  async #fetchKeys(): Promise<void> {
    try {
      this.keysVersion = (await this.#connection!.call('getChallengeKeys', {})).keys?.version ?? 0n;
    } catch (error) {
      if (!(error instanceof CallRefused)) throw error;
    }
  }

  async #fetchTicketKeys(): Promise<void> {
    try {
      this.ticketKeysVersion = (await this.#connection!.call('getSessionTicketKeys', {})).keys?.version ?? 0n;
    } catch (error) {
      if (!(error instanceof CallRefused)) throw error;
    }
  }

  #receiveAcme(batch: AcmeBatch): void {
    const verdict = judgeBatch(this.acme, batch);
    if (verdict === 'apply') this.#moveAcme(create(AcmePositionSchema, { epoch: batch.epoch, sequence: batch.to }));
    else if (verdict === 'pull') void this.#pullAcme();
  }

  /** What an authority waits for is acknowledged at once. */
  #moveAcme(position: AcmePosition): void {
    this.acme = position;
    this.#options.onAcme(this.index, position.sequence);
    if (this.#holdsAcks || this.#stopped || !this.#connection || this.#connection.closed) return;
    this.#connection.call('applied', { acme: position }).catch(() => undefined);
  }

  #feeds(): { feeds?: FeedPosition[] } {
    return this.#followsPurges ? { feeds: [this.purges] } : {};
  }

  #receiveFeed(batch: FeedBatch): void {
    if (batch.feed !== PURGES) return;
    const verdict = judgeBatch(this.purges, batch);
    if (verdict === 'apply') this.#movePurges(batch.epoch, batch.to, batch.mark);
    else if (verdict === 'pull') void this.#pullPurges();
  }

  #movePurges(epoch: bigint, sequence: bigint, mark: Uint8Array): void {
    this.purges = create(FeedPositionSchema, { feed: PURGES, epoch, sequence, mark });
    this.#options.onPurges(this.index, sequence);
    this.#purgesSteps.reached(epoch, sequence);
    this.#scheduleApplied();
  }

  /** The next heartbeat's target tries again. */
  async #pullPurges(): Promise<void> {
    if (this.#pullingPurges || this.#stopped) return;
    this.#pullingPurges = true;
    try {
      let pageToken = '';
      do {
        const answer = await this.#connection!.call('getFeed', { feed: PURGES, after: this.purges, pageToken });
        pageToken = answer.nextPageToken;
        const { position } = answer;
        const isOlder = position?.epoch === this.purges.epoch && position.sequence < this.purges.sequence;
        if (pageToken === '' && position && !isOlder)
          this.#movePurges(position.epoch, position.sequence, position.mark);
      } while (pageToken !== '');
    } catch (error) {
      if (!(error instanceof CallRefused)) throw error;
    } finally {
      this.#pullingPurges = false;
    }
  }

  /** The next heartbeat's target tries again. */
  async #pullAcme(): Promise<void> {
    try {
      const { position } = await this.#connection!.call('getAcmeTokens', {});
      const isOlder = position?.epoch === this.acme.epoch && position.sequence < this.acme.sequence;
      if (position && !isOlder) this.#moveAcme(position);
    } catch (error) {
      if (!(error instanceof CallRefused)) throw error;
    }
  }

  #applyDelta(delta: ConfigDelta): void {
    this.store.changeEntries(delta.upserts, delta.deletes);
    this.#moveConfig(delta);
  }

  #moveBans(epoch: bigint, sequence: bigint, mark: Uint8Array): void {
    this.bans = create(BanPositionSchema, { epoch, sequence, mark });
    this.#options.onBans(this.index, sequence);
    this.#bansSteps.reached(epoch, sequence);
    this.#scheduleApplied();
  }

  #moveConfig({ epoch, revision, setHash, mark }: Pick<ConfigDelta, 'epoch' | 'revision' | 'setHash' | 'mark'>): void {
    // What it holds decides; a difference sends it to repair.
    const held = this.store.setHash();
    this.config = create(ConfigPositionSchema, {
      epoch,
      track: Track.STABLE,
      revision,
      setHash: held ?? setHash,
      mark,
    });
    this.#options.onConfig(this.index, revision);
    this.#configSteps.reached(epoch, revision);
    this.#scheduleApplied();
    if (held && Buffer.compare(held, setHash) !== 0) {
      this.config = create(ConfigPositionSchema, { track: Track.STABLE });
      void this.#pull();
    }
  }

  #aim(target: Target): void {
    this.#target = target;
    if (this.#options.joinsAtHead && this.config.revision === 0n) {
      this.config = target.config ?? this.config;
      this.bans = target.bans ?? this.bans;
    }
    if (this.#behind()) void this.#pull();
    const { acme } = target;
    const isBehind = acme && (acme.epoch !== this.acme.epoch || acme.sequence > this.acme.sequence);
    if (acme && acme.epoch > 0n && isBehind) void this.#pullAcme();
    const purges = this.#followsPurges ? target.feeds.find(({ feed }) => feed === PURGES) : undefined;
    if (purges && (purges.epoch !== this.purges.epoch || purges.sequence > this.purges.sequence))
      void this.#pullPurges();
  }

  #behind(): { config: boolean; bans: boolean } | null {
    const { config, bans } = this.#target ?? {};
    const behind = {
      config: config !== undefined && (config.epoch !== this.config.epoch || config.revision > this.config.revision),
      bans: bans !== undefined && (bans.epoch !== this.bans.epoch || bans.sequence > this.bans.sequence),
    };
    return behind.config || behind.bans ? behind : null;
  }

  /** Fetches what it lacks; one pull at a time, repeated until it is where the console is. */
  async #pull(): Promise<void> {
    if (this.#pulling || this.#stopped) return;
    this.#pulling = true;
    this.counts.pulls += 1;
    try {
      await this.#pullBans();
      await this.#pullConfig();
    } catch (error) {
      if (!(error instanceof CallRefused)) throw error;
      this.pullRefusal = error;
      // The heartbeat's target or the next event tries again.
      if (!this.#stopped) setTimeout(() => this.#behind() && void this.#pull(), RETRY_PULL_MS).unref();
    } finally {
      this.#pulling = false;
    }
  }

  async #pullBans(): Promise<void> {
    let pageToken = '';
    do {
      const answer = await this.#connection!.call('getBans', { after: this.bans, pageToken });
      if (answer.reset) this.store.replaceBans(answer.upserts);
      else this.store.changeBans(answer.upserts, answer.removedIds);
      pageToken = answer.nextPageToken;
      const { position } = answer;
      const ahead = position && position.epoch === this.bans.epoch && position.sequence < this.bans.sequence;
      if (pageToken === '' && position && !ahead) this.#moveBans(position.epoch, position.sequence, position.mark);
    } while (pageToken !== '');
  }

  async #pullConfig(): Promise<void> {
    for (let round = 0; round < 1000; round++) {
      const { result } = await this.#connection!.call('getConfig', { base: this.config });
      if (result.case === 'page') await this.#pullSnapshot(result.value);
      else if (result.case === 'repair' && result.value.checkpoint) {
        const buckets = new Set(result.value.buckets);
        this.store.replaceBuckets(({ kind, id }) => buckets.has(bucketOf(kind, id)), result.value.entries);
        this.#moveConfig(result.value.checkpoint);
      } else if (result.case === 'delta') {
        const { value: delta } = result;
        if (delta.revision === this.config.revision) return;
        if (judgeDelta(this.config, delta) === 'apply') this.#applyDelta(delta);
      }
      if (!this.#behind()?.config) return;
    }
  }

  async #pullSnapshot(first: {
    nextPageToken: string;
    entries: Parameters<NodeStore['replaceEntries']>[0];
    checkpoint?: ConfigPosition | undefined;
  }): Promise<void> {
    let page = first;
    let checkpoint = page.checkpoint;
    let entries = [...page.entries];
    while (page.nextPageToken !== '') {
      const { result } = await this.#connection!.call('getConfig', {
        base: this.config,
        pageToken: page.nextPageToken,
      });
      if (result.case !== 'page') return;
      page = result.value;
      // Another checkpoint: the snapshot started over.
      if (page.checkpoint?.revision !== checkpoint?.revision) entries = [];
      checkpoint = page.checkpoint;
      entries.push(...page.entries);
    }
    if (!checkpoint) return;
    this.store.replaceEntries(entries);
    this.#moveConfig(checkpoint);
  }

  #scheduleApplied(): void {
    if (this.#holdsAcks || this.#appliedTimer) return;
    this.#appliedTimer = setTimeout(() => {
      this.#appliedTimer = null;
      this.#acknowledge();
    }, appliedPause(this.#appliedSpreadMs));
  }

  #acknowledge(): void {
    if (this.#holdsAcks || this.#stopped || !this.#connection || this.#connection.closed) return;
    const steps = { configSteps: this.#configSteps.take(), bansSteps: this.#bansSteps.take() };
    const purges = { position: this.purges, steps: this.#purgesSteps.take() };
    const feeds = this.#followsPurges ? { feeds: [purges] } : {};
    this.#connection.call('applied', { config: this.config, bans: this.bans, ...steps, ...feeds }).then(
      () => {
        this.counts.reports += 1;
      },
      () => undefined,
    );
  }

  #beat(): void {
    if (this.#stopped) return;
    this.#heartbeatTimer = setTimeout(() => this.#beat(), this.#heartbeatMs * (0.9 + Math.random() * 0.2));
    if (this.#stalled || this.#holdsAcks || !this.#connection || this.#connection.closed) return;
    this.heartbeat().catch((error) => {
      if (!(error instanceof CallRefused)) throw error;
    });
  }
}
