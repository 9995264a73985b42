// Figures of feeds, the same of each: how many of the nodes connected here lag, and what nodes ask for.
import { Counter, Gauge, type Registry } from 'prom-client';
import type { Runtime } from '../../runtime/runtime.ts';
import type { NodeReports } from './node-reports.ts';
import type { WatchHub } from './watch/watch-hub.ts';

const repairs = new WeakMap<Registry, Counter<'feed'>>();

/** Counts a call that asked for what a node lacks of a feed. */
export function countRepair({ metrics }: Pick<Runtime, 'metrics'>, feed: string): void {
  let counter = repairs.get(metrics);
  if (!counter) {
    counter = new Counter({
      name: 'svc_feed_repairs_total',
      help: 'Calls of nodes that could not follow a feed from what they were sent, by feed.',
      labelNames: ['feed'],
      registers: [metrics],
    });
    repairs.set(metrics, counter);
  }
  counter.inc({ feed });
}

/** Registers the figure of nodes that lag. */
export function watchLagging({ metrics, feeds }: Runtime, hub: WatchHub, reports: NodeReports): void {
  new Gauge({
    name: 'svc_feed_nodes_behind',
    help: 'Nodes connected to this process that have not reported the end of a feed that they follow, by feed.',
    labelNames: ['feed'],
    registers: [metrics],
    collect() {
      const behind = new Map([...feeds].map(({ name }) => [name, 0]));
      const add = (name: string) => behind.set(name, behind.get(name)! + 1);
      for (const { node, cluster } of hub.streams()) {
        const { epoch, revision } = cluster.headOf(cluster.trackOf(node));
        const config = reports.configOf(node.nodeId);
        const own = cluster.configFeedOf(node);
        if (revision > 0n && (config?.epoch !== epoch || config.revision < revision)) add(own);
        for (const { feed, track } of cluster.othersOf(node)) {
          const place = reports.placeOf(node.nodeId, feed.name);
          if (track.ring.head > 0n && (place?.epoch !== track.epoch || place.sequence < track.ring.head))
            add(feed.name);
        }
      }
      for (const [feed, nodes] of behind) this.set({ feed }, nodes);
    },
  });
}
