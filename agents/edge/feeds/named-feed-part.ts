// A feed by name as a part of the agent.

import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { FeedAppliedSchema } from '../../../proto/gen/svc/node/v1/node_pb.js';
import type { DataPlane } from '../caddy/data-plane.ts';
import type { EdgeNode, Part, PartKind } from '../lib/part.ts';
import { type FeedOwner, NamedFeed } from './named-feed.ts';

/** What a folder with a feed brings: `name` as the console registers it. The owner may be more of a part itself. */
export interface NamedFeedKind<O extends FeedOwner> {
  name: string;
  make(node: EdgeNode, dataPlane: DataPlane): O & Omit<Part, 'start' | 'maintain' | 'close'>;
}

export interface NamedFeedPart<O extends FeedOwner> extends Part {
  readonly owner: O;
}

export function namedFeedPart<O extends FeedOwner>({ name, make }: NamedFeedKind<O>): PartKind<NamedFeedPart<O>> {
  return {
    name,
    make: (node, dataPlane) => {
      const owner = make(node, dataPlane);
      const { paths, identity } = node.options;
      const feed = new NamedFeed({
        name,
        owner,
        path: join(paths.edgeDir, `feed-${name}.journal`),
        nodeId: identity.nodeId,
        clusterId: identity.clusterId,
        log: node.log,
        channel: node.channel,
        applied: (position) => {
          const { epoch, sequence: number } = position;
          node.tell({
            case: 'reached',
            feed: name,
            epoch,
            number,
            urgent: false,
            write: (request, steps) => {
              const applied = create(FeedAppliedSchema, { position, steps });
              request.feeds = [...(request.feeds ?? []), applied];
            },
          });
          node.reportSoon();
        },
      });
      return {
        owner,
        start: () => feed.start(),
        status: (report) => {
          feed.status(report);
          owner.status?.(report);
        },
        event: (event) => {
          feed.event(event);
          owner.event?.(event);
        },
        maintain: () => feed.maintain(),
        stop: async () => {
          await feed.stop();
          await owner.stop?.();
        },
        close: () => feed.close(),
      };
    },
  };
}
