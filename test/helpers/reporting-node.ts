// A node that says to the console what a test lets it say, and nothing by itself.
import type { Connection, Identity } from '../../bench/fleet/connection.ts';
import type { TestConsole } from './console.ts';
import { connectAs, enrollOne } from './fleet.ts';
import type { Api, Body } from './resources.ts';

export class ReportingNode {
  readonly identity: Identity;
  connection: Connection;
  readonly #console: TestConsole;
  readonly #features: readonly string[];

  private constructor(console: TestConsole, identity: Identity, features: readonly string[]) {
    this.identity = identity;
    this.connection = connectAs(console, identity);
    this.#console = console;
    this.#features = features;
  }

  static async enroll(
    console: TestConsole,
    clusterId: string,
    features: readonly string[] = ['bans-v1', 'challenge-v1'],
  ): Promise<ReportingNode> {
    return new ReportingNode(console, await enrollOne(console, clusterId, features), features);
  }

  get id(): string {
    return this.identity.nodeId;
  }

  beat(more: Body = {}): Promise<Body> {
    return this.connection.call('heartbeat', { info: { features: this.#features }, dataPlaneHealthy: true, ...more });
  }

  /** What the node was told to run, as it reports it. */
  async onTarget(): Promise<Body> {
    const { target } = await this.beat();
    return { config: target.config, bans: { position: target.bans } };
  }

  /** Leaves it as a minute of silence does. */
  async fallSilent(): Promise<void> {
    await this.#console.running.runtime.pools
      .api('node_state')
      .where({ node_id: this.id })
      .update({ last_seen_at: new Date(Date.now() - 60_000) });
  }

  /** Another connection with the same certificate. */
  reconnect(): void {
    this.connection.destroy();
    this.connection = connectAs(this.#console, this.identity);
  }

  stop(): void {
    this.connection.destroy();
  }
}

/** A cluster with one site, and its node, which runs what it is told. */
export async function servedSite(
  console: TestConsole,
  api: Api,
): Promise<{ clusterId: string; siteId: string; node: ReportingNode }> {
  const clusterId = await api.cluster('hong-kong');
  const siteId: string = (await api.site(clusterId, 'shop.example')).id;
  const node = await ReportingNode.enroll(console, clusterId);
  await node.beat(await node.onTarget());
  return { clusterId, siteId, node };
}
