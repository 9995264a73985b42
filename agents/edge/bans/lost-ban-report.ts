// Tells the console which bans a restore of its database took from this node. They are on disk before they are replaced, until
// the console has them: an agent that ends at any point says it all the same, perhaps twice.
import { create, fromJson, type JsonValue, toJson } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import {
  BanSchema,
  type ReportLostBansRequest,
  ReportLostBansRequestSchema,
} from '../../../proto/gen/svc/node/v1/bans_pb.js';
import { readTextIfPresent, removeFile, writeFileAtomic } from '../../kit/files.ts';
import type { Log } from '../../kit/log.ts';
import { PullLoop } from '../lib/pull-loop.ts';
import type { ServerClock } from '../lib/server-clock.ts';
import type { BanRow, BanStore } from './ban-store.ts';
import { lostReport, lostRows } from './lost-bans.ts';

export interface LostBanReportOptions {
  path: string;
  clusterId: string;
  store: Pick<BanStore, 'ordered' | 'toMessage'>;
  clock: Pick<ServerClock, 'offsetMs'>;
  log: Log;
  /** The connection while the console responds. */
  channel: () => LostBanChannel | undefined;
}

interface LostBanChannel {
  reportLostBans(request: ReportLostBansRequest, options: { signal: AbortSignal }): Promise<void>;
}

export class LostBanReport {
  private readonly options: LostBanReportOptions;
  private readonly loop: PullLoop;
  private waiting: ReportLostBansRequest | undefined;

  constructor(options: LostBanReportOptions) {
    this.options = options;
    this.waiting = this.read();
    this.loop = new PullLoop({
      name: 'lost bans',
      log: options.log,
      pull: (signal) => this.send(signal),
      settled: () => undefined,
    });
  }

  /** Another history takes the place of the bans that are held; it has `kept`. Nothing of them is replaced yet. */
  note(epoch: bigint, kept: ReadonlyMap<string, BanRow>): void {
    const { store, clock, log } = this.options;
    const offset = BigInt(Math.round(clock.offsetMs()));
    const lost = lostRows(store.ordered(), kept).map((row) => {
      const ban = store.toMessage(row);
      return create(BanSchema, { ...ban, expiresAtMs: ban.expiresAtMs + offset });
    });
    const report = lostReport(epoch, lost, kept, this.waiting);
    if (report.bans.length === 0) return;
    log.warn('the console has lost bans that this node holds', {
      epoch,
      bans: BigInt(report.bans.length) + report.unnamed,
    });
    this.waiting = report;
    this.write(report);
    this.loop.request();
  }

  onConnected(): void {
    this.loop.hurry();
    if (this.waiting) this.loop.request();
  }

  stop(): Promise<void> {
    return this.loop.stop();
  }

  private async send(signal: AbortSignal): Promise<boolean> {
    const { log, path, channel } = this.options;
    const report = this.waiting;
    const present = channel();
    if (!report || !present) return false;
    try {
      await present.reportLostBans(report, { signal });
    } catch (error) {
      if (!(error instanceof ConnectError) || error.code !== Code.Unimplemented) throw error;
      // An older console; the next connection may be to another one.
      log.warn('the console takes no reports of lost bans', { error });
      return false;
    }
    // Another history may have begun meanwhile.
    if (this.waiting !== report) return true;
    this.waiting = undefined;
    removeFile(path);
    log.info('lost bans reported', { epoch: report.epoch, bans: report.bans.length });
    return false;
  }

  private write(report: ReportLostBansRequest): void {
    const { path, clusterId, log } = this.options;
    try {
      const said = toJson(ReportLostBansRequestSchema, report);
      writeFileAtomic(path, `${JSON.stringify({ clusterId, report: said })}\n`);
    } catch (error) {
      log.error('lost bans not on disk, they are reported from memory', { error });
    }
  }

  private read(): ReportLostBansRequest | undefined {
    const { path, clusterId, log } = this.options;
    try {
      const text = readTextIfPresent(path);
      if (text === undefined) return undefined;
      const stored = JSON.parse(text) as { clusterId?: unknown; report?: JsonValue };
      if (stored.clusterId === clusterId) return fromJson(ReportLostBansRequestSchema, stored.report ?? null);
    } catch (error) {
      log.warn('lost bans of a former process not read', { path, error });
    }
    removeFile(path);
    return undefined;
  }
}
