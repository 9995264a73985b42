// The ban feed: every change of a ban, in the order of commits.
import { create } from '@bufbuild/protobuf';
import { BAN_CHANGES } from '../../models/bans/ban-feed.ts';
import { BanPositionSchema } from '../../proto/gen/svc/node/v1/bans_pb.js';
import { WatchEventSchema } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { Feed } from '../../runtime/feeds.ts';
import { banSource } from './ban-source.ts';

const banFeed: Feed = {
  name: 'bans',
  topic: 'bans',
  ownerLock: 0x53560102,
  lane: 'urgent',
  wire: {
    event: WatchEventSchema.field.banBatch.number,
    needs: null,
    silenceIsNothing: false,
    isMarked: true,
    told: ({ bans }) => bans,
    steps: ({ bansSteps = [] }) => bansSteps,
    aim: (target, { epoch, sequence }) => {
      target.bans = create(BanPositionSchema, { epoch, sequence });
    },
  },
  columns: { epoch: 'ban_epoch', sequence: 'ban_sequence', at: 'bans_applied_at' },
  hint: 'bans',
  changes: BAN_CHANGES,
  source: banSource,
  repair: null,
};

export default banFeed;
