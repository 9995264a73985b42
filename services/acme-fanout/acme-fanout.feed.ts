// The feed of what certificate authorities are answered: changes of tokens, in the order of commits.
import { ACME_TOPIC } from '../../models/certificates/acme-token.ts';
import { WatchEventSchema } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { Feed } from '../../runtime/feeds.ts';
import { acmeSource } from './acme-source.ts';

const acmeFeed: Feed = {
  name: 'acme',
  topic: ACME_TOPIC,
  ownerLock: 0x53560105,
  event: WatchEventSchema.field.acmeBatch.number,
  hint: null,
  changes: null,
  source: acmeSource,
};

export default acmeFeed;
