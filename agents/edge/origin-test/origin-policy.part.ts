// The origin allow list of this node's configuration, as the data plane has it.
import { fromBinary } from '@bufbuild/protobuf';
import { OriginPolicySchema } from '../../../proto/gen/svc/config/v1/cluster_pb.js';
import { errorText } from '../../kit/log.ts';
import { type EntryReader, entryReaderPart } from '../lib/part.ts';

const KIND = 'origin-policy';

interface OriginPolicyPart extends EntryReader {
  /** CIDRs that the address policy does not hold for. */
  readonly allowed: readonly string[];
}

export const originPolicyPart = entryReaderPart<OriginPolicyPart>({
  name: 'origin policy',
  make: ({ log }) => {
    let allowed: readonly string[] = [];
    return {
      get allowed() {
        return allowed;
      },
      entries: {
        put: (kind, _id, body) => {
          if (kind !== KIND) return;
          try {
            allowed = fromBinary(OriginPolicySchema, body).allowedCidrs;
          } catch (error) {
            log.warn('origin allow list not readable, tests of origins use the last one', { error: errorText(error) });
          }
        },
        remove: (kind) => {
          if (kind === KIND) allowed = [];
        },
        clear: () => {
          allowed = [];
        },
      },
    };
  },
});
