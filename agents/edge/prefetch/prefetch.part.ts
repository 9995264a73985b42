import type { EdgeClient } from '../caddy/edge-client.ts';
import type { Part, PartKind } from '../lib/part.ts';

/** What prefetches need of the data plane. */
export interface PrefetchPart extends Part {
  readonly client: Pick<EdgeClient, 'prefetch'>;
}

export const prefetchPart: PartKind<PrefetchPart> = {
  name: 'prefetch',
  make: (_node, { client }) => ({ client }),
};
