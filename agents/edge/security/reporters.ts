// Tells the console about own bans, security events and levels. Times leave here by the console's clock.
import { Code, ConnectError } from '@connectrpc/connect';
import type { NodeChannel } from '../../kit/channel-client.ts';
import type { Log } from '../../kit/log.ts';
import { type Clock, machineClock } from '../lib/clock.ts';
import type { ServerClock } from '../lib/server-clock.ts';
import { writeOwnBan } from './own-ban.ts';
import { ReportLoop } from './report-loop.ts';
import type { SecurityJournal } from './security-journal.ts';
import { reportedSites } from './site-levels.ts';

const MAX_BANS = 1000;
const MAX_EVENTS = 500;

export interface ReportersOptions {
  journal: SecurityJournal;
  log: Log;
  /** Undefined while there is no console. */
  channel: () => NodeChannel | undefined;
  serverClock: ServerClock;
  clock?: Clock;
}

export class Reporters {
  private readonly options: ReportersOptions;
  private readonly clock: Clock;
  private readonly bans: ReportLoop;
  private readonly security: ReportLoop;
  /** Level changes the console knows; negative when it knows none. */
  private reportedLevels = -1;

  constructor(options: ReportersOptions) {
    this.options = options;
    this.clock = options.clock ?? machineClock;
    const { log, journal, channel } = options;
    const { state } = journal;
    this.bans = new ReportLoop({
      name: 'own bans',
      log,
      due: () => state.waitingBans.length > 0 && channel() !== undefined,
      send: (signal) => this.sendBans(signal),
    });
    this.security = new ReportLoop({
      name: 'security events',
      log,
      // Levels above normal are said again and again: people see by the time of the report that they still hold.
      due: () =>
        (state.waitingEvents.length > 0 || state.levelChanges !== this.reportedLevels || state.sites().length > 0) &&
        channel() !== undefined,
      send: (signal) => this.sendSecurity(signal),
    });
  }

  /** Something was added. */
  soon(): void {
    this.bans.soon();
    this.security.soon();
  }

  /** A console that may know nothing of this node. */
  onConnected(): void {
    this.reportedLevels = -1;
    this.soon();
  }

  async stop(): Promise<void> {
    await Promise.all([this.bans.stop(), this.security.stop()]);
  }

  /** The console's clock minus the monotonic one of this machine. */
  private offsetMs(): number {
    return this.clock.wall() + this.options.serverClock.offsetMs() - this.clock.monotonic();
  }

  private async sendBans(signal: AbortSignal): Promise<void> {
    const { journal } = this.options;
    const { waitingBans } = journal.state;
    while (waitingBans.length > 0) {
      const channel = this.options.channel();
      if (!channel) return;
      const rows = waitingBans.slice(0, MAX_BANS);
      const live = rows.filter((row) => row.expiresAt > this.clock.monotonic());
      const bans = live.map((row) => writeOwnBan(row, this.offsetMs()));
      if (bans.length > 0) await this.unlessRefused('own bans', () => channel.reportBans({ bans }, { signal }));
      // Some may have been lifted or given up meanwhile: only what is still in front was said.
      let said = 0;
      while (said < rows.length && waitingBans[said] === rows[said]) said++;
      journal.reported(said, 0);
      if (said < rows.length) return;
    }
  }

  private async sendSecurity(signal: AbortSignal): Promise<void> {
    const { journal } = this.options;
    const { state } = journal;
    // Once in a round of reports, and whenever it changed.
    let stateDue = state.sites().length > 0;
    do {
      const channel = this.options.channel();
      if (!channel) return;
      const rows = state.waitingEvents.slice(0, MAX_EVENTS);
      const offset = this.offsetMs();
      const events = rows.map(({ event, at }) => ({ ...event, occurredAtMs: BigInt(Math.round(at + offset)) }));
      const { levelChanges } = state;
      const hasState = stateDue || levelChanges !== this.reportedLevels;
      const sites = hasState ? reportedSites(state.sites()) : [];
      await this.unlessRefused('security events', () =>
        channel.reportSecurity({ events, hasState, sites, dropped: state.dropped }, { signal }),
      );
      this.reportedLevels = levelChanges;
      stateDue = false;
      let said = 0;
      while (said < rows.length && state.waitingEvents[said] === rows[said]) said++;
      journal.reported(0, said);
      if (said < rows.length) return;
    } while (state.waitingEvents.length > 0);
  }

  /** A report the console will never take must not hold up those behind it. */
  private async unlessRefused(what: string, call: () => Promise<void>): Promise<void> {
    try {
      await call();
    } catch (error) {
      if (!(error instanceof ConnectError) || error.code !== Code.InvalidArgument) throw error;
      this.options.log.error('console rejects a report, report discarded', { what, error });
    }
  }
}
