// The agent of an enrolled node: journals first, then the data plane and the kernel, then the console. It serves what it
// has with the console gone and follows the console when it is there. What it does is in its parts.
import type { HeartbeatResponse, Target } from '../../../proto/gen/svc/node/v1/node_pb.js';
import type { NodeEvent } from '../../kit/channel-client.ts';
import { interfaceAddresses, machineInfo } from '../../kit/machine.ts';
import { SystemMetrics } from '../../kit/system-metrics.ts';
import type { AgentOptions } from '../agent-options.ts';
import { DataPlane } from '../caddy/data-plane.ts';
import { reportDataPlane } from '../caddy/data-plane-report.ts';
import { EdgeClient } from '../caddy/edge-client.ts';
import { PARTS } from '../gen/parts.ts';
import { every } from '../lib/every.ts';
import { NodeReport } from '../lib/node-report.ts';
import type { EdgeNode } from '../lib/part.ts';
import { Parts } from '../lib/parts.ts';
import { AGENT_VERSION } from '../version.ts';
import { ConsoleLink } from './console-link.ts';
import { HeartbeatLoop } from './heartbeat.ts';
import { StatusFile } from './status-file.ts';

const MAINTAIN_MS = 30_000;

export class EdgeAgent {
  private readonly options: AgentOptions;
  private readonly stopping = new AbortController();
  private readonly metrics = new SystemMetrics();
  private readonly console: ConsoleLink;
  private readonly dataPlane: DataPlane;
  private readonly parts: Parts;
  private readonly heartbeat: HeartbeatLoop;
  private readonly status: StatusFile;

  /** Reads the journals; throws when the disk cannot be used. */
  constructor(options: AgentOptions) {
    this.options = options;
    const { log } = options;
    this.console = this.makeConsoleLink();
    this.dataPlane = new DataPlane({
      client: new EdgeClient(options.socket),
      log,
      changed: () => this.reportSoon(),
      answered: (value) => this.parts.tell({ case: 'dataPlaneStatus', value }),
    });
    this.heartbeat = new HeartbeatLoop({
      channel: () => this.console.current,
      log,
      build: () => {
        const metrics = this.metrics.read(this.dataPlane.status?.activeConnections ?? 0n);
        return { ...this.report().toHeartbeat(), metrics };
      },
      answered: (response) => this.onHeartbeat(response),
    });
    this.status = new StatusFile(options.statusFile, log, () => this.report().toStatus());
    const node = this.makeNode();
    this.parts = new Parts(PARTS, (kind) => kind.make(node, this.dataPlane), log);
    this.parts.makeAll();
  }

  async start(): Promise<void> {
    this.dataPlane.start();
    this.status.start();
    await this.parts.start();
    every(MAINTAIN_MS, 'maintenance', () => this.parts.maintain(), this.options.log, this.stopping.signal);
    this.console.start();
    this.heartbeat.start();
  }

  /** Stops following the console and leaves everything serving. */
  async stop(): Promise<void> {
    this.heartbeat.stop();
    this.stopping.abort();
    await Promise.all([this.console.stop(), this.parts.stop()]);
    this.dataPlane.stop();
    this.status.stop();
    await this.parts.close();
  }

  private makeConsoleLink(): ConsoleLink {
    const { paths, identity, log } = this.options;
    return new ConsoleLink({
      stateDir: paths.stateDir,
      identity,
      log,
      stopping: this.stopping.signal,
      positions: () => this.report().positions,
      onEvent: (event) => this.onEvent(event),
      connected: () => {
        this.parts.tell({ case: 'connected' });
        this.reportSoon();
      },
      changed: () => this.reportSoon(),
      shown: () => this.status.soon(),
    });
  }

  private makeNode(): EdgeNode {
    const { options, console } = this;
    return {
      options,
      log: options.log,
      stopping: this.stopping.signal,
      channel: () => console.current,
      reached: () => (console.isConnected ? console.current : undefined),
      openChannel: () => console.open(),
      of: (kind) => this.parts.of(kind),
      entryReaders: () => this.parts.entryReaders(),
      tell: (event) => this.parts.tell(event),
      reportSoon: () => this.reportSoon(),
      showSoon: () => this.status.soon(),
      every: (periodMs, name, work) => every(periodMs, name, work, options.log, this.stopping.signal),
    };
  }

  private onEvent(event: NodeEvent): void {
    const receivedAt = performance.now();
    if (event.case === 'target') this.onTarget(event.value);
    else if (event.case !== undefined) this.parts.tell({ ...event, receivedAt });
  }

  private onTarget(value: Target): void {
    this.parts.tell({ case: 'target', value });
  }

  private onHeartbeat(response: HeartbeatResponse): void {
    this.parts.tell({ case: 'heartbeat', value: response });
    if (response.target) this.onTarget(response.target);
    this.console.renewIfDue(response.renewCertificate);
    this.status.soon();
  }

  private reportSoon(): void {
    this.heartbeat.soon();
    this.status.soon();
  }

  /** What this node reports and shows at this moment. */
  private report(): NodeReport {
    const report = new NodeReport();
    Object.assign(report.info, machineInfo(), {
      agentVersion: AGENT_VERSION,
      ipAddresses: interfaceAddresses(),
      proxyPeersUnset: this.options.proxyPeers.length === 0,
    });
    this.console.status(report, this.heartbeat.problem);
    reportDataPlane(report, this.dataPlane);
    this.parts.status(report);
    return report;
  }
}
