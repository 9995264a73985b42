// For services that emit a feed: this process owns some of the partitions of clusters.
import type { ServiceSchema } from 'moleculer';
import { FeedActor } from '../pipeline/feed-actor.ts';
import type { Feed } from '../runtime/feeds.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { runs } from './runs.ts';

/** Emits the feed while the service runs. */
export function feedActor(runtime: Runtime, feed: Feed): Partial<ServiceSchema> {
  return runs(() => new FeedActor(runtime, feed));
}
