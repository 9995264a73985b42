// The agent of an enrolled node: journals first, then the data plane and the kernel, then the console. It serves what it
// has with the console gone and follows the console when it is there.
import type { Capability } from '../../../contract/capabilities.ts';
import type { BanState } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import type { SessionTicketKeys } from '../../../proto/gen/svc/node/v1/certificates_pb.js';
import type { ConfigPosition, FailedEntry } from '../../../proto/gen/svc/node/v1/config_pb.js';
import type { HeartbeatResponse, Target, WatchEvent } from '../../../proto/gen/svc/node/v1/node_pb.js';
import { backoffDelay, sleep, untilItWorks } from '../../kit/backoff.ts';
import { decodeEvent, NodeChannel, type NodeEvent, type NodeIdentity } from '../../kit/channel-client.ts';
import { removeFile } from '../../kit/files.ts';
import { keepWatching } from '../../kit/keep-watching.ts';
import { errorText, type Log } from '../../kit/log.ts';
import type { ProcessMark } from '../../kit/process-info.ts';
import { Renewal } from '../../kit/renewal.ts';
import { SystemMetrics } from '../../kit/system-metrics.ts';
import { AcmeAnswers } from '../acme/acme-answers.ts';
import { BanFeed } from '../bans/ban-feed.ts';
import { BanStore } from '../bans/ban-store.ts';
import { DataPlane } from '../caddy/data-plane.ts';
import { EdgeClient } from '../caddy/edge-client.ts';
import { Certificates } from '../certificates/certificates.ts';
import { ConfigFeed } from '../config/config-feed.ts';
import { ConfigStore, observers } from '../config/config-store.ts';
import { SESSION_TICKET_KEYS } from '../keys/session-ticket-keys.ts';
import { SharedKeys } from '../keys/shared-keys.ts';
import { ServerClock } from '../lib/server-clock.ts';
import { SkippedMessages } from '../lib/skipped-messages.ts';
import { AllowList } from '../nft/allow-list.ts';
import { allGlobalBans } from '../nft/ban-source.ts';
import { KernelBans } from '../nft/kernel-bans.ts';
import type { EdgePaths } from '../paths.ts';
import { Protection } from '../security/protection.ts';
import { Statistics } from '../stats/statistics.ts';
import { AppliedReporter } from './applied-reporter.ts';
import { ClockFile } from './clock-file.ts';
import { HeartbeatLoop } from './heartbeat.ts';
import { NodeCapabilities } from './node-capabilities.ts';
import { buildHeartbeat, describeNode, type NodeView, nodeFeatures } from './node-report.ts';
import { StatusFile } from './status-file.ts';
import { VitalReporter } from './vital-reporter.ts';

const HTTPS: Capability = 'https-v1';
const MAINTAIN_MS = 30_000;
const VERIFY_MS = 10 * 60_000;
const RESOLVE_MS = 5 * 60_000;
const ALLOW_DEBOUNCE_MS = 100;
const KERNEL_WAIT_MS = 1000;
const KERNEL_RETRY_MIN_MS = 10_000;
const KERNEL_RETRY_MAX_MS = 10 * 60_000;
const MAX_LOGGED_FAILURES = 10;

export interface AgentOptions {
  paths: EdgePaths;
  /** Caddy's socket. */
  socket: string;
  statusFile: string;
  identity: NodeIdentity;
  log: Log;
  banCapacity: number;
  kernelBans: 'auto' | 'on' | 'off';
  nftBin: string;
  nftTable: string;
  proxyPeers: readonly string[];
  /** Process the kernel table belongs to. */
  owner: ProcessMark;
  /** Leave the kernel table to the supervisor when stopping. */
  keepTable: boolean;
}

export class EdgeAgent {
  private readonly options: AgentOptions;
  private readonly log: Log;
  private readonly stopping = new AbortController();
  private readonly clock: ServerClock;
  private readonly clockFile: ClockFile;
  private readonly metrics = new SystemMetrics();
  private readonly allow: AllowList;
  private readonly config: ConfigStore;
  private readonly bans: BanStore;
  private readonly client: EdgeClient;
  private readonly dataPlane: DataPlane;
  private readonly configFeed: ConfigFeed;
  private readonly banFeed: BanFeed;
  private readonly applied: AppliedReporter;
  private readonly heartbeat: HeartbeatLoop;
  private readonly vitals: VitalReporter;
  private readonly stats: Statistics;
  private readonly protection: Protection;
  private readonly ticketKeys: SharedKeys<SessionTicketKeys>;
  private readonly acme: AcmeAnswers;
  private readonly certificates: Certificates;
  private readonly capabilities: NodeCapabilities;
  private readonly status: StatusFile;
  private readonly renewal: Renewal;
  private channel: NodeChannel;
  private connected = false;
  private channelProblem = 'not connected yet';
  private kernel: KernelBans | undefined;
  private kernelProblem = '';
  private kernelStarting: Promise<void> | undefined;
  private kernelTrying: Promise<void> | undefined;
  private readonly skippedEvents: SkippedMessages;
  private consoleNames: string[];
  /** Unset until the data plane has said what it runs. */
  private appliedConfig: ConfigPosition | undefined;
  private failed: FailedEntry[] = [];
  private banState: BanState | undefined;
  private allowTimer: NodeJS.Timeout | undefined;
  private readonly timers: NodeJS.Timeout[] = [];
  private watching: Promise<void> | undefined;

  /** Reads the journals; throws when the disk cannot be used. */
  constructor(options: AgentOptions) {
    this.options = options;
    const { log, paths, identity } = options;
    this.log = log;
    this.clockFile = new ClockFile(paths.clock, log);
    this.clock = new ServerClock(undefined, this.clockFile.read());
    this.skippedEvents = new SkippedMessages('events of the console', log);
    this.allow = new AllowList(log, options.proxyPeers, () => this.allowedChanged());
    const { nodeId, clusterId } = identity;
    const channel = (): NodeChannel | undefined => (this.stopping.signal.aborted ? undefined : this.channel);
    this.certificates = new Certificates({
      path: paths.certificates,
      log,
      channel: () => (this.connected ? channel() : undefined),
      isNeeded: () => this.isAble([HTTPS]),
      formerEntries: (kind) => this.config.formerBodies(kind),
      grew: () => this.dataPlane.readCertificates(),
      changed: () => this.reportSoon(),
    });
    this.config = ConfigStore.open({
      path: paths.configJournal,
      nodeId,
      clusterId,
      log,
      observer: observers(this.allow, this.certificates.observer),
      able: (features) => this.isAble(features),
    });
    this.bans = BanStore.open({ path: paths.banJournal, nodeId, clusterId, log });
    this.consoleNames = [new URL(identity.serverUrl).hostname.replace(/^\[|\]$/g, '')];
    this.channel = new NodeChannel(identity);
    this.renewal = new Renewal({ stateDir: paths.stateDir, log, identity, renewed: (next) => this.useIdentity(next) });
    this.client = new EdgeClient(options.socket);
    this.capabilities = new NodeCapabilities(paths.capabilities, log);
    this.applied = new AppliedReporter(channel, log);
    this.dataPlane = new DataPlane({
      client: this.client,
      config: this.config,
      bans: this.bans,
      log,
      configApplied: (position, failed, micros) => {
        this.appliedConfig = position;
        this.noteFailed(failed);
        this.certificates.onApplied();
        this.vitals.onApplied(position, failed, this.dataPlane.status?.instanceId ?? '');
        this.applied.configApplied(position, failed, micros);
        this.reportSoon();
      },
      bansApplied: (state, micros) => {
        this.banState = state;
        this.applied.bansApplied(state.position!, micros);
        this.reportSoon();
      },
      repairConfig: () => this.repairConfig(),
      repairBans: () => this.bans.rewrite(),
      ready: (siteIds) => this.certificates.ready(siteIds),
      changed: () => this.reportSoon(),
      answered: (status) => {
        this.capabilities.observe(status.capabilities);
        this.certificates.onAble();
        this.protection.onStatus(status);
        this.ticketKeys.onStatus(status);
        this.acme.onStatus(status);
      },
    });
    this.configFeed = new ConfigFeed({
      store: this.config,
      log,
      channel,
      changed: (base, change, receivedAt) => this.dataPlane.pushConfig(base, change, receivedAt),
      replaced: () => this.dataPlane.reloadConfig(),
    });
    this.banFeed = new BanFeed({
      store: this.bans,
      clock: this.clock,
      log,
      channel,
      changed: (change, receivedAt) => {
        this.dataPlane.pushBans(change, receivedAt);
        this.protection.onLifts(change.liftedOwn);
        // Starting nft blocks for milliseconds; by then the request to Caddy is on its way.
        setImmediate(() => this.kernel?.update(change.globalCidrs));
      },
      replaced: () => {
        this.dataPlane.reloadBans();
        this.kernel?.resync();
      },
    });
    this.protection = new Protection({
      paths,
      nodeId,
      clusterId,
      capacity: options.banCapacity,
      client: this.client,
      log,
      channel,
      isConnected: () => this.connected,
      serverClock: this.clock,
      globalChanged: (cidrs) => this.kernel?.update(cidrs),
      liftAgain: (lifts) => this.dataPlane.liftOwn(lifts),
      check: () => this.dataPlane.check(),
      changed: () => this.reportSoon(),
      shown: () => this.status.soon(),
    });
    this.ticketKeys = new SharedKeys(SESSION_TICKET_KEYS, {
      path: paths.sessionTicketKeys,
      clusterId,
      client: this.client,
      log,
      channel,
      pushed: () => this.reportSoon(),
    });
    this.acme = new AcmeAnswers({
      client: this.client,
      clock: this.clock,
      log,
      channel,
      applied: (position) => this.applied.acmeApplied(position),
    });
    this.heartbeat = new HeartbeatLoop({
      channel,
      log,
      build: () => buildHeartbeat(this.view()),
      answered: (answer) => this.onAnswer(answer),
    });
    this.vitals = new VitalReporter({
      client: this.client,
      channel: () => (this.connected ? channel() : undefined),
      log,
    });
    removeFile(paths.oldStatsLedger);
    this.stats = new Statistics({
      folder: paths.statsFolder,
      nodeId,
      client: this.client,
      clock: this.clock,
      log,
      channel: () => (this.connected ? channel() : undefined),
      openBacklog: () => new NodeChannel(this.renewal.identity),
    });
    this.status = new StatusFile(options.statusFile, log, () => describeNode(this.view()));
    log.info('journals read', {
      nodeId,
      revision: this.config.position.revision,
      entries: this.config.size,
      banSequence: this.bans.position.sequence,
      bans: this.bans.size,
    });
  }

  async start(): Promise<void> {
    this.dataPlane.start();
    this.status.start();
    // The console itself must be exempt before the first ban reaches the kernel. Without name service that takes seconds,
    // in which the channel can be opened already.
    this.kernelStarting = this.allow.resolve(this.consoleNames).then(() => this.startKernelBans());
    await Promise.race([this.kernelStarting, sleep(KERNEL_WAIT_MS, this.stopping.signal)]);
    this.every(MAINTAIN_MS, 'maintenance', async () => {
      this.clockFile.keep(this.clock.reading());
      this.config.flush();
      await this.bans.maintain();
      await this.protection.maintain();
      await this.settleVersions();
      await this.config.compactIfWorthwhile();
      await this.certificates.maintain();
    });
    this.every(VERIFY_MS, 'verification', async () => {
      if (!(await this.config.verify())) this.configFeed.startRepair('disk');
    });
    this.every(RESOLVE_MS, 'address resolution', () => this.allow.resolve(this.consoleNames));
    this.watching = keepWatching<WatchEvent>({
      log: this.log,
      signal: this.stopping.signal,
      open: (signal) => this.channel.watch(this.positions(), signal),
      onEvent: (event) => this.onEvent(event),
      connected: () => this.onConnected(),
      disconnected: (problem) => this.onDisconnected(problem),
    });
    this.heartbeat.start();
    this.stats.start();
  }

  /** Stops following the console and leaves everything serving. */
  async stop(): Promise<void> {
    for (const timer of this.timers) clearInterval(timer);
    clearTimeout(this.allowTimer);
    this.clockFile.keep(this.clock.reading());
    this.heartbeat.stop();
    this.applied.stop();
    this.vitals.stop();
    this.stopping.abort();
    this.channel.close();
    await Promise.all([
      this.watching,
      this.configFeed.stop(),
      this.banFeed.stop(),
      this.certificates.stop(),
      this.stats.stop(),
      this.protection.stop(),
      this.ticketKeys.stop(),
      this.acme.stop(),
    ]);
    this.dataPlane.stop();
    await this.kernelStarting;
    await this.kernelTrying;
    await this.kernel
      ?.close(this.options.keepTable)
      .catch((error) => this.log.warn('kernel table not deleted', { error }));
    this.status.stop();
    await Promise.all([this.config.close(), this.bans.close(), this.protection.close(), this.certificates.close()]);
  }

  private positions() {
    const { base } = this.configFeed;
    const bans = this.bans.position;
    const acme = this.acme.position;
    return { ...(base ? { config: base } : {}), ...(bans.epoch > 0n ? { bans } : {}), ...(acme ? { acme } : {}) };
  }

  private onEvent(event: WatchEvent): void {
    const receivedAt = performance.now();
    let decoded: NodeEvent;
    try {
      decoded = decodeEvent(event);
    } catch (error) {
      // What it changed is asked for when the next one does not follow, or when a target says how far the console is.
      this.skippedEvents.note(error);
      this.reportSoon();
      return;
    }
    switch (decoded.case) {
      case 'banBatch':
        this.banFeed.onBatch(decoded.value, receivedAt);
        break;
      case 'configDelta':
        this.configFeed.onDelta(decoded.value, receivedAt);
        break;
      case 'acmeBatch':
        this.acme.onBatch(decoded.value);
        break;
      case 'ping':
        this.clock.observe(decoded.value.serverTimeMs);
        break;
      case 'target':
        this.onTarget(decoded.value);
        break;
      case 'keysChanged':
        this.protection.onKeysVersion(decoded.value.version);
        this.ticketKeys.onVersion(decoded.value.sessionTicketVersion);
        break;
      // Tasks and settings belong to capabilities this node does not report.
      default:
        break;
    }
  }

  private onTarget(target: Target): void {
    this.clock.observe(target.serverTimeMs);
    if (target.config) this.configFeed.onTarget(target.config);
    if (target.bans) this.banFeed.onTarget(target.bans);
    if (target.acme) this.acme.onTarget(target.acme);
  }

  private onConnected(): void {
    this.connected = true;
    this.channelProblem = '';
    this.log.info('connected to the console', { server: this.options.identity.serverUrl });
    this.configFeed.onConnected();
    this.banFeed.onConnected();
    this.certificates.onConnected();
    this.protection.onConnected();
    this.ticketKeys.onConnected();
    this.acme.onConnected();
    this.stats.onConnected();
    this.reportSoon();
  }

  private onDisconnected(problem: string): void {
    this.connected = false;
    this.channelProblem = problem;
    const notAfterMs = this.renewal.notAfter * 1000;
    if (Date.now() > notAfterMs) {
      this.log.error('the certificate of this node has expired, enroll it again', {
        notAfter: new Date(notAfterMs).toISOString(),
      });
    }
    this.reopenChannel();
    this.status.soon();
  }

  private reopenChannel(): void {
    const old = this.channel;
    this.channel = new NodeChannel(this.renewal.identity);
    old.close();
  }

  private useIdentity(_identity: NodeIdentity): void {
    // Closing the old connection ends the watch, which then reconnects with the new certificate.
    this.reopenChannel();
  }

  private onAnswer(answer: HeartbeatResponse): void {
    this.clock.observe(answer.serverTimeMs);
    this.applied.spread(answer.appliedSpreadMs);
    this.configFeed.onMissingFeatures(answer.missingFeatures);
    if (answer.target) this.onTarget(answer.target);
    this.protection.onKeysVersion(answer.challengeKeysVersion);
    this.ticketKeys.onVersion(answer.sessionTicketKeysVersion);
    this.vitals.watch(answer.vitalWatch);
    const names = [
      new URL(this.options.identity.serverUrl).hostname.replace(/^\[|\]$/g, ''),
      ...answer.consoleAddresses,
    ];
    if (JSON.stringify(names) !== JSON.stringify(this.consoleNames)) {
      this.consoleNames = names;
      void this.allow.resolve(names);
    }
    void this.renewal.check(this.channel, answer.renewCertificate);
    this.status.soon();
  }

  /** Logs entries that newly fail. */
  private noteFailed(failed: FailedEntry[]): void {
    const known = new Set(this.failed.map(({ kind, id, reason }) => `${kind}/${id} ${reason}`));
    const fresh = failed.filter(({ kind, id, reason }) => !known.has(`${kind}/${id} ${reason}`));
    for (const { kind, id, reason } of fresh.slice(0, MAX_LOGGED_FAILURES)) {
      this.log.error('entry cannot be put to work, its previous version keeps serving', { kind, id, reason });
    }
    if (fresh.length > MAX_LOGGED_FAILURES)
      this.log.error('more entries cannot be put to work', { entries: fresh.length });
    this.failed = failed;
  }

  private reportSoon(): void {
    this.heartbeat.soon();
    this.status.soon();
  }

  private async repairConfig(): Promise<void> {
    if (await this.config.rewrite()) return;
    this.configFeed.startRepair('disk');
    throw new Error('entries of the configuration were lost with its journal, the console has to bring them');
  }

  /** Asks Caddy which former versions still serve. While it does not say, all that may are kept. */
  private async settleVersions(): Promise<void> {
    if (this.config.unsettled === 0 || !this.dataPlane.healthy) return;
    try {
      const answer = await this.dataPlane.failing();
      if (answer) await this.config.settle(answer.position, answer.running);
    } catch (error) {
      this.log.warn('data plane does not say which entries fail', { error: errorText(error) });
    }
  }

  private isAble(features: readonly string[]): boolean {
    const own = nodeFeatures({ capabilities: this.capabilities, kernel: this.kernel });
    return features.every((name) => own.has(name));
  }

  /** What this node reports and shows at this moment. */
  private view(): NodeView {
    const { identity, nftTable, banCapacity, proxyPeers } = this.options;
    return {
      identity,
      nftTable,
      banCapacity,
      proxyPeers,
      connected: this.connected,
      channelProblem: this.channelProblem || this.heartbeat.problem,
      config: this.config,
      bans: this.bans,
      configFeed: this.configFeed,
      banFeed: this.banFeed,
      dataPlane: this.dataPlane,
      protection: this.protection,
      ticketKeys: this.ticketKeys,
      acme: this.acme,
      certificates: this.certificates,
      capabilities: this.capabilities,
      kernel: this.kernel,
      kernelProblem: this.kernelProblem,
      skippedEvents: this.skippedEvents,
      metrics: this.metrics,
      certificateNotAfter: this.renewal.notAfter,
      appliedConfig: this.appliedConfig,
      failed: this.failed,
      banState: this.banState,
    };
  }

  /** Resolves after the first try; what does not work now is tried again, for as long as the agent runs. */
  private startKernelBans(): Promise<void> {
    const { kernelBans, nftTable } = this.options;
    if (kernelBans === 'off') {
      this.kernelProblem = 'turned off';
      return Promise.resolve();
    }
    return new Promise((tried) => {
      const trying = untilItWorks(() => this.makeKernelBans(), {
        signal: this.stopping.signal,
        delay: (failures) => backoffDelay(failures, Math.random, KERNEL_RETRY_MIN_MS, KERNEL_RETRY_MAX_MS),
        failed: (error, retryInMs) => {
          const reason = errorText(error);
          const level = reason === this.kernelProblem ? 'debug' : kernelBans === 'on' ? 'error' : 'warn';
          this.kernelProblem = reason;
          this.log[level]('kernel bans do not work here, banning at HTTP level only', { reason, retryInMs });
          tried();
        },
      });
      this.kernelTrying = trying.then((kernel) => {
        if (kernel) {
          this.kernelProblem = '';
          this.log.info('kernel bans active', { table: nftTable, entries: kernel.entries });
          this.reportSoon();
        }
        tried();
      });
    });
  }

  private async makeKernelBans(): Promise<KernelBans> {
    const { nftBin, nftTable, owner, banCapacity, identity } = this.options;
    const written = this.bans.position;
    const own = this.protection.globalCidrs();
    const kernel = await KernelBans.start({
      nftBin,
      table: nftTable,
      nodeId: identity.nodeId,
      owner,
      capacity: banCapacity,
      source: allGlobalBans(this.bans, this.protection),
      allowed: () => this.allow.cidrs(),
      log: this.log,
    });
    this.kernel = kernel;
    // What changed while the table was made is not in it.
    if (this.bans.position !== written || this.protection.globalCidrs().join() !== own.join()) kernel.resync();
    kernel.allowedChanged();
    return kernel;
  }

  private allowedChanged(): void {
    this.allowTimer ??= setTimeout(() => {
      this.allowTimer = undefined;
      this.kernel?.allowedChanged();
    }, ALLOW_DEBOUNCE_MS);
  }

  /** Runs `work` periodically, never twice at a time. */
  private every(periodMs: number, name: string, work: () => Promise<void>): void {
    let running = false;
    this.timers.push(
      setInterval(() => {
        if (running) return;
        running = true;
        work()
          .catch((error) => this.log.error(`${name} failed`, { error }))
          .finally(() => {
            running = false;
          });
      }, periodMs),
    );
  }
}
