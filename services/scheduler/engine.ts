// The engine of DNS: an actor for each cluster, in the process that owns the cluster's partition. It looks at the nodes every
// second or two and decides what names should be, and brings the zone there; both begin again from the database after a kill.
import { isAsDecided, publishDns } from '../../mixins/dns/publish-dns.ts';
import { dnsBinding } from '../../models/dns/binding.ts';
import { type DnsWork, dnsWork, noteSiteChanges } from '../../models/dns/engine.ts';
import { type DnsNodeFact, dnsNodes } from '../../models/dns/facts.ts';
import { dnsRevision } from '../../models/dns/revision.ts';
import { Partitions } from '../../pipeline/partitions.ts';
import { systemCall } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { partitionOf } from '../../runtime/stream-names.ts';
import { Wakeable } from '../../runtime/wakeable.ts';
import { write } from '../../runtime/write.ts';
import { runCluster, SeenSerials } from './run-cluster.ts';

const TICK_MS = 1_000;
/** Clusters worked on at the same time. */
const PARALLEL = 4;
const OWNED = { name: 'scheduler', ownerLock: 0x53560108 } as const;

export class DnsEngine {
  readonly #runtime: Runtime;
  readonly #partitions: Partitions;
  readonly #wakeable = new Wakeable();
  readonly #stopping = new AbortController();
  readonly #seen = new SeenSerials();
  readonly #running = new Map<string, Promise<void>>();
  /** What was looked at when a cluster was found as decided: as long as it is the same, nothing of it is read again. */
  #decided = new Map<string, string>();
  #ticking: Promise<void> | null = null;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    this.#partitions = new Partitions(runtime, OWNED, {
      onGained: () => this.#wakeable.wake(),
      onLost: () => undefined,
    });
  }

  async start(): Promise<void> {
    await this.#partitions.start();
    this.#ticking = this.#loop();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wakeable.end();
    await this.#ticking;
    await Promise.all(this.#running.values());
    await this.#partitions.stop();
  }

  #owns(clusterId: string): boolean {
    return this.#partitions.owned.has(partitionOf(clusterId));
  }

  async #loop(): Promise<void> {
    let failing = false;
    while (!this.#stopping.signal.aborted) {
      try {
        if (this.#partitions.owned.size > 0) await this.#tick();
        failing = false;
      } catch (err) {
        if (!failing) this.#runtime.log.warn({ err }, 'looking at DNS failed, retrying');
        failing = true;
      }
      await this.#wakeable.sleep(TICK_MS);
    }
  }

  async #tick(): Promise<void> {
    const sql = this.#runtime.pools.api;
    await noteSiteChanges(sql);
    const work = (await dnsWork(sql)).filter(({ clusterId }) => this.#owns(clusterId));
    await this.#decide(work);
    for (const { clusterId } of (await dnsWork(sql)).filter(({ due }) => due)) {
      if (this.#running.size >= PARALLEL) return;
      if (this.#running.has(clusterId) || !this.#owns(clusterId)) continue;
      this.#running.set(clusterId, this.#run(clusterId));
    }
  }

  /** Decides anew for clusters whose nodes are not as they were. */
  async #decide(work: readonly DnsWork[]): Promise<void> {
    const followed = work.filter(({ mode }) => mode !== 'off');
    if (followed.length === 0) return;
    const ids = followed.map(({ clusterId }) => clusterId);
    const nodes = Map.groupBy(await dnsNodes(this.#runtime.pools.api, ids), ({ clusterId }) => clusterId);
    const before = this.#decided;
    this.#decided = new Map();
    for (const { clusterId, target, blocked, updatedAt } of followed) {
      const facts = nodes.get(clusterId) ?? [];
      const seen = JSON.stringify([target, blocked, updatedAt, facts]);
      if (before.get(clusterId) === seen || (await this.#decideOne(clusterId, facts)))
        this.#decided.set(clusterId, seen);
    }
  }

  /** Returns whether the cluster was as decided already. */
  async #decideOne(clusterId: string, nodes: readonly DnsNodeFact[]): Promise<boolean> {
    const sql = this.#runtime.pools.api;
    const row = await dnsBinding(sql, clusterId);
    if (!row) return false;
    const [target, held] = await Promise.all([
      dnsRevision(sql, clusterId, row.target),
      dnsRevision(sql, clusterId, row.blocked),
    ]);
    if (isAsDecided(row, nodes, target, held)) return true;
    await write(this.#runtime, systemCall('scheduler'), {}, (tx) => publishDns(tx, clusterId, { reason: 'health' }));
    return false;
  }

  async #run(clusterId: string): Promise<void> {
    const { signal } = this.#stopping;
    try {
      await runCluster(this.#runtime, clusterId, { seen: this.#seen, owns: () => this.#owns(clusterId), signal });
    } catch (err) {
      if (!signal.aborted) this.#runtime.log.error({ err, cluster: clusterId }, 'writing DNS records failed');
    } finally {
      this.#running.delete(clusterId);
    }
  }
}
