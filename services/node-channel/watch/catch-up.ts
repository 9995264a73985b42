// Reads from PostgreSQL what the fan-out streams did not deliver and puts it into the rings: one read for all nodes of
// the cluster, instead of a Target that makes each of them read for itself.
import type { Pool } from 'pg';
import { readConfigHead } from '../../../models/config/config-history.ts';
import type { Feed, FeedSource } from '../../../runtime/feeds.ts';
import { appendBatch } from './append.ts';
import { CANARY, type ClusterFeed, CONFIG } from './cluster-feed.ts';

/** Batches read in one go; what is further behind is told by a Target. */
const MAX_BATCHES = 10;

/** Brings the ring of the feed to the head. */
export async function catchUp(pool: Pool, cluster: ClusterFeed, feed: Feed, source: FeedSource): Promise<void> {
  const track = cluster.tracks.get(feed.name)!;
  const { epoch } = track;
  const { clusterId } = cluster;
  if ((feed.name === CONFIG || feed.name === CANARY) && !(await differencesReach(pool, cluster, feed.name))) return;
  for (let count = 0; count < MAX_BATCHES; count++) {
    const from = track.ring.head;
    const target = (await source.targets([clusterId])).get(clusterId);
    // Another epoch is for the comparison with the heads to notice.
    if (!target || target.epoch !== epoch || target.position <= from) return;
    const batch = await source.read(clusterId, from, target);
    if (!batch || track.epoch !== epoch) return;
    appendBatch(cluster, feed, batch);
    cluster.wake();
  }
}

/** Where differences do not reach back that far, nodes are told the head and fetch it. */
async function differencesReach(pool: Pool, cluster: ClusterFeed, name: string): Promise<boolean> {
  const track = cluster.tracks.get(name)!;
  const { epoch, ring } = track;
  const from = ring.head;
  const heads = await readConfigHead(pool, cluster.clusterId);
  const head = name === CANARY ? heads?.canary : heads;
  if (!head || head.epoch !== epoch || track.epoch !== epoch) return false;
  if (from >= head.deltaFloor) return true;
  ring.clear(head.revision);
  cluster.wake();
  return false;
}
