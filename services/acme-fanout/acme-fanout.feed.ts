// The feed of what certificate authorities are answered: changes of tokens, in the order of commits.

import { create } from '@bufbuild/protobuf';
import { ACME_TOPIC } from '../../models/certificates/acme-token.ts';
import { AcmePositionSchema } from '../../proto/gen/svc/node/v1/certificates_pb.js';
import { WatchEventSchema } from '../../proto/gen/svc/node/v1/node_pb.js';
import { unmarked } from '../../runtime/feed-wire.ts';
import type { Feed } from '../../runtime/feeds.ts';
import { acmeSource } from './acme-source.ts';

const acmeFeed: Feed = {
  name: 'acme',
  topic: ACME_TOPIC,
  ownerLock: 0x53560105,
  lane: 'urgent',
  wire: {
    event: WatchEventSchema.field.acmeBatch.number,
    needs: null,
    // A node keeps tokens in memory: one that has lost what it had must not be taken for one that answers.
    silenceIsNothing: true,
    isMarked: false,
    told: ({ acme }) => acme && unmarked(acme),
    steps: () => [],
    aim: (target, { epoch, sequence }) => {
      target.acme = create(AcmePositionSchema, { epoch, sequence });
    },
  },
  columns: { epoch: 'acme_epoch', sequence: 'acme_sequence', at: null },
  hint: null,
  changes: null,
  source: acmeSource,
  repair: null,
};

export default acmeFeed;
