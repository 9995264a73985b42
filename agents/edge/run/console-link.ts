// The connection to the console and the identity behind it.
import type { WatchEvent } from '../../../proto/gen/svc/node/v1/node_pb.js';
import { decodeEvent, NodeChannel, type NodeEvent, type NodeIdentity } from '../../kit/channel-client.ts';
import { keepWatching } from '../../kit/keep-watching.ts';
import type { Log } from '../../kit/log.ts';
import { Renewal } from '../../kit/renewal.ts';
import type { NodeReport } from '../lib/node-report.ts';
import { SkippedMessages } from '../lib/skipped-messages.ts';
import { AGENT_VERSION } from '../version.ts';

export interface ConsoleLinkOptions {
  stateDir: string;
  identity: NodeIdentity;
  log: Log;
  stopping: AbortSignal;
  /** Positions of the node when a stream opens. */
  positions: () => NodeReport['positions'];
  onEvent: (event: NodeEvent) => void;
  connected: () => void;
  /** What heartbeats say changed. */
  changed: () => void;
  /** What people are shown changed. */
  shown: () => void;
}

export class ConsoleLink {
  private readonly options: ConsoleLinkOptions;
  private readonly log: Log;
  private readonly renewal: Renewal;
  private readonly skipped: SkippedMessages;
  private channel: NodeChannel;
  private watching: Promise<void> | undefined;
  /** Why there is no connection; "" while there is one. */
  private problem = 'not connected yet';

  constructor(options: ConsoleLinkOptions) {
    this.options = options;
    const { stateDir, log, identity } = options;
    this.log = log;
    this.channel = new NodeChannel(identity);
    this.skipped = new SkippedMessages('events from the console', log);
    this.renewal = new Renewal({
      stateDir,
      log,
      identity,
      // Closing the old connection ends the stream, which then reconnects with the new certificate.
      renewed: () => this.reopen(),
    });
  }

  /** The connection; undefined once the agent stops. */
  get current(): NodeChannel | undefined {
    return this.options.stopping.aborted ? undefined : this.channel;
  }

  get isConnected(): boolean {
    return this.problem === '';
  }

  /** One more connection, with the identity of now. */
  open(): NodeChannel {
    return new NodeChannel(this.renewal.identity);
  }

  start(): void {
    this.watching = keepWatching<WatchEvent>({
      log: this.log,
      signal: this.options.stopping,
      open: (signal) => this.channel.watch(this.options.positions(), signal),
      onEvent: (event) => this.onEvent(event),
      connected: () => {
        this.problem = '';
        this.log.info('connected to the console', { server: this.options.identity.serverUrl });
        this.options.connected();
      },
      disconnected: (problem) => this.onDisconnected(problem),
    });
  }

  /** Renews the certificate when it is time or the console asks. */
  renewIfDue(isAsked: boolean): void {
    void this.renewal.check(this.channel, isAsked);
  }

  status(report: NodeReport, heartbeatProblem: string): void {
    const { identity } = this.options;
    const { notAfter } = this.renewal;
    report.heartbeat.certificateNotAfter = BigInt(notAfter);
    report.shown.node = {
      id: identity.nodeId,
      name: identity.nodeName,
      clusterId: identity.clusterId,
      serverUrl: identity.serverUrl,
    };
    report.shown.console = { connected: this.isConnected, problem: this.problem || heartbeatProblem };
    report.shown.agent = {
      version: AGENT_VERSION,
      pid: process.pid,
      certificateNotAfter: new Date(notAfter * 1000).toISOString(),
    };
    report.problem('feature', this.skipped.message);
  }

  /** Closes the connection; the stream ends with it. */
  async stop(): Promise<void> {
    this.channel.close();
    await this.watching;
  }

  private onEvent(event: WatchEvent): void {
    let decoded: NodeEvent;
    try {
      decoded = decodeEvent(event);
    } catch (error) {
      // What it changed is asked for when the next one does not follow, or when a target says how far the console is.
      this.skipped.note(error);
      this.options.changed();
      return;
    }
    this.options.onEvent(decoded);
  }

  private onDisconnected(problem: string): void {
    this.problem = problem === '' ? 'the connection ended' : problem;
    const notAfterMs = this.renewal.notAfter * 1000;
    if (Date.now() > notAfterMs) {
      this.log.error('node certificate has expired, enroll the node again', {
        notAfter: new Date(notAfterMs).toISOString(),
      });
    }
    this.reopen();
    this.options.shown();
  }

  private reopen(): void {
    const old = this.channel;
    this.channel = this.open();
    old.close();
  }
}
