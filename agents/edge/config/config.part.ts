// The configuration of the node: its journal, the feed from the console, and the way into the data plane.
import type { ConfigPosition, FailedEntry } from '../../../proto/gen/svc/node/v1/config_pb.js';
import { errorText, type Log } from '../../kit/log.ts';
import type { DataPlane } from '../caddy/data-plane.ts';
import type { AgentEvent } from '../lib/agent-event.ts';
import type { NodeReport } from '../lib/node-report.ts';
import type { EdgeNode, Part, PartKind } from '../lib/part.ts';
import { capabilitiesPart } from '../run/capabilities.part.ts';
import { ConfigFeed } from './config-feed.ts';
import { ConfigPusher } from './config-pusher.ts';
import { ConfigStore, observers } from './config-store.ts';

const VERIFY_MS = 10 * 60_000;
const MAX_LOGGED_FAILURES = 10;

export const configPart: PartKind<ConfigPart> = {
  name: 'config',
  make: (node, dataPlane) => new ConfigPart(node, dataPlane),
};

class ConfigPart implements Part {
  readonly store: ConfigStore;
  private readonly node: EdgeNode;
  private readonly log: Log;
  private readonly dataPlane: DataPlane;
  private readonly feed: ConfigFeed;
  private readonly pusher: ConfigPusher;
  /** Unset until the data plane has said what it runs. */
  private applied: ConfigPosition | undefined;
  private failed: FailedEntry[] = [];

  constructor(node: EdgeNode, dataPlane: DataPlane) {
    this.node = node;
    this.log = node.log;
    this.dataPlane = dataPlane;
    const { capabilities } = node.of(capabilitiesPart);
    const readers = node.entryReaders();
    const { paths, identity } = node.options;
    this.store = ConfigStore.open({
      path: paths.configJournal,
      nodeId: identity.nodeId,
      clusterId: identity.clusterId,
      log: node.log,
      observer: observers(...readers.map(({ entries }) => entries)),
      able: (names) => capabilities.has(names),
    });
    this.pusher = new ConfigPusher({
      dataPlane,
      store: this.store,
      log: node.log,
      applied: (position, failed, micros) => this.onApplied(position, failed, micros),
      repair: () => this.repair(),
      ready: (entries) => {
        const waits = readers.flatMap((reader) => reader.ready?.(entries) ?? []);
        return waits.length === 0 ? undefined : Promise.all(waits).then(() => undefined);
      },
    });
    this.feed = new ConfigFeed({
      store: this.store,
      log: node.log,
      channel: node.channel,
      changed: (base, change, receivedAt) => this.pusher.push(base, change, receivedAt),
      replaced: () => this.pusher.reload(),
    });
    const { position, size } = this.store;
    node.log.info('configuration read', {
      nodeId: identity.nodeId,
      revision: position.revision,
      entries: size,
    });
  }

  start(): void {
    this.node.every(VERIFY_MS, 'verification', async () => {
      if (!(await this.store.verify())) this.feed.startRepair('disk');
    });
  }

  status(report: NodeReport): void {
    const { store, feed, applied, failed } = this;
    if (applied) report.heartbeat.config = applied;
    report.heartbeat.failed = failed;
    if (feed.base) report.positions.config = feed.base;
    report.shown.config = {
      epoch: store.position.epoch.toString(),
      revision: store.position.revision.toString(),
      appliedRevision: (applied?.revision ?? 0n).toString(),
      entries: store.size,
      failed: failed.length,
      held: Number(this.dataPlane.status?.held ?? 0n),
      missingFeatures: feed.missing,
    };
    report.problem('following', feed.message);
    report.problem('following', store.problem);
  }

  event(event: AgentEvent): void {
    if (event.case === 'configDelta') this.feed.onDelta(event.value, event.receivedAt);
    else if (event.case === 'target' && event.value.config) this.feed.onTarget(event.value.config);
    else if (event.case === 'heartbeat') this.feed.onMissingFeatures(event.value.missingFeatures);
    else if (event.case === 'connected') this.feed.onConnected();
    else if (event.case === 'certificatesChanged') this.pusher.readCertificates();
  }

  async maintain(): Promise<void> {
    this.store.flush();
    await this.settleVersions();
    await this.store.compactIfWorthwhile();
  }

  stop(): Promise<void> {
    return this.feed.stop();
  }

  close(): Promise<void> {
    return this.store.close();
  }

  private onApplied(position: ConfigPosition, failed: FailedEntry[], micros: number): void {
    this.applied = position;
    this.noteFailed(failed);
    this.node.tell({ case: 'configApplied', position, failed });
    this.node.tell({
      case: 'reached',
      feed: 'config',
      epoch: position.epoch,
      number: position.revision,
      urgent: false,
      write: (request, configSteps) =>
        Object.assign(request, { config: position, failed, configMicros: BigInt(micros), configSteps }),
    });
    this.node.reportSoon();
  }

  /** Logs entries that newly fail. */
  private noteFailed(failed: FailedEntry[]): void {
    const known = new Set(this.failed.map(({ kind, id, reason }) => `${kind}/${id} ${reason}`));
    const fresh = failed.filter(({ kind, id, reason }) => !known.has(`${kind}/${id} ${reason}`));
    for (const { kind, id, reason } of fresh.slice(0, MAX_LOGGED_FAILURES)) {
      this.log.error('configuration entry not applied, its previous version stays in use', { kind, id, reason });
    }
    if (fresh.length > MAX_LOGGED_FAILURES)
      this.log.error('more configuration entries not applied', { entries: fresh.length });
    this.failed = failed;
  }

  private async repair(): Promise<void> {
    if (await this.store.rewrite()) return;
    this.feed.startRepair('disk');
    throw new Error('configuration entries were lost with the journal; the console must send them again');
  }

  /** Asks Caddy which former versions still serve. While it does not say, all that may are kept. */
  private async settleVersions(): Promise<void> {
    if (this.store.unsettled === 0 || !this.dataPlane.healthy) return;
    try {
      const answer = await this.pusher.failing();
      if (answer) await this.store.settle(answer.position, answer.running);
    } catch (error) {
      this.log.warn('data plane did not report failed entries', { error: errorText(error) });
    }
  }
}
