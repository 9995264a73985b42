// Global bans in the kernel, as long as that works on this machine.
import type { Capability } from '../../../contract/capabilities.ts';
import { backoffDelay, sleep, untilItWorks } from '../../kit/backoff.ts';
import { errorText } from '../../kit/log.ts';
import type { BanStore } from '../bans/ban-store.ts';
import { bansPart } from '../bans/bans.part.ts';
import type { AgentEvent } from '../lib/agent-event.ts';
import type { NodeReport } from '../lib/node-report.ts';
import type { EdgeNode, Part, PartKind } from '../lib/part.ts';
import { capabilitiesPart } from '../run/capabilities.part.ts';
import { protectionPart } from '../security/protection.part.ts';
import type { Protection } from '../security/protection.ts';
import { allowListPart } from './allow-list.part.ts';
import { allGlobalBans } from './ban-source.ts';
import { KernelBans } from './kernel-bans.ts';

const KERNEL_BANS: Capability = 'kernel-ban-v1';
const ALLOW_DEBOUNCE_MS = 100;
const WAIT_MS = 1000;
const RETRY_MIN_MS = 10_000;
const RETRY_MAX_MS = 10 * 60_000;

export const kernelBansPart: PartKind = {
  name: 'kernel bans',
  make: (node) => new KernelBansPart(node),
};

class KernelBansPart implements Part {
  private readonly node: EdgeNode;
  private readonly bans: BanStore;
  private readonly protection: Protection;
  private kernel: KernelBans | undefined;
  private problem = '';
  private starting: Promise<void> | undefined;
  private trying: Promise<void> | undefined;
  private allowTimer: NodeJS.Timeout | undefined;

  constructor(node: EdgeNode) {
    this.node = node;
    this.bans = node.of(bansPart).store;
    this.protection = node.of(protectionPart).protection;
    node.of(capabilitiesPart).capabilities.offer(KERNEL_BANS, () => this.kernel?.message === '');
  }

  /** The console itself must be exempt before the first ban reaches the kernel. Without name service that takes seconds. */
  async start(): Promise<void> {
    this.starting = this.node
      .of(allowListPart)
      .resolve()
      .then(() => this.startTable());
    await Promise.race([this.starting, sleep(WAIT_MS, this.node.stopping)]);
  }

  status(report: NodeReport): void {
    const { kernel, problem } = this;
    const { nftTable } = this.node.options;
    report.shown.kernel = kernel
      ? { table: nftTable, entries: kernel.entries, problem: kernel.message }
      : { table: null, entries: 0, problem };
    if (kernel && report.heartbeat.bans) report.heartbeat.bans.kernelEntries = BigInt(kernel.entries);
    report.problem('lasting', kernel?.message ?? '');
  }

  event(event: AgentEvent): void {
    if (event.case === 'ownBansChanged') this.kernel?.update(event.globalCidrs);
    else if (event.case === 'exemptChanged') this.allowedChanged();
    else if (event.case === 'bansChanged') {
      const { globalCidrs } = event;
      // Starting nft blocks for milliseconds; by then the request to Caddy is on its way.
      if (globalCidrs) setImmediate(() => this.kernel?.update(globalCidrs));
      else this.kernel?.resync();
    }
  }

  stop(): void {
    clearTimeout(this.allowTimer);
  }

  async close(): Promise<void> {
    await this.starting;
    await this.trying;
    await this.kernel?.close(this.node.options.keepTable);
  }

  /** Resolves after the first try; what does not work now is tried again, for as long as the agent runs. */
  private startTable(): Promise<void> {
    const { options, log, stopping } = this.node;
    const { kernelBans, nftTable } = options;
    if (kernelBans === 'off') {
      this.problem = 'turned off';
      return Promise.resolve();
    }
    return new Promise((tried) => {
      const trying = untilItWorks(() => this.makeTable(), {
        signal: stopping,
        delay: (failures) => backoffDelay(failures, Math.random, RETRY_MIN_MS, RETRY_MAX_MS),
        failed: (error, retryInMs) => {
          const reason = errorText(error);
          const level = reason === this.problem ? 'debug' : kernelBans === 'on' ? 'error' : 'warn';
          this.problem = reason;
          log[level]('kernel bans do not work here, node bans over HTTP only', { reason, retryInMs });
          tried();
        },
      });
      this.trying = trying.then((kernel) => {
        if (kernel) {
          this.problem = '';
          log.info('kernel bans active', { table: nftTable, entries: kernel.entries });
          this.node.reportSoon();
        }
        tried();
      });
    });
  }

  private async makeTable(): Promise<KernelBans> {
    const { node, bans, protection } = this;
    const { nftBin, nftTable, owner, banCapacity, identity } = node.options;
    const allowList = node.of(allowListPart).entries;
    const written = bans.position;
    const own = protection.globalCidrs();
    const kernel = await KernelBans.start({
      nftBin,
      table: nftTable,
      nodeId: identity.nodeId,
      owner,
      capacity: banCapacity,
      source: allGlobalBans(bans, protection),
      allowed: () => allowList.cidrs(),
      log: node.log,
    });
    this.kernel = kernel;
    // What changed while the table was made is not in it.
    if (bans.position !== written || protection.globalCidrs().join() !== own.join()) kernel.resync();
    kernel.allowedChanged();
    return kernel;
  }

  private allowedChanged(): void {
    this.allowTimer ??= setTimeout(() => {
      this.allowTimer = undefined;
      this.kernel?.allowedChanged();
    }, ALLOW_DEBOUNCE_MS);
  }
}
