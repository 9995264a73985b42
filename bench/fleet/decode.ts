// Decodes Watch events. A console sends the same bytes to every node, so each event is decoded once for all simulated
// nodes: the time saved would otherwise be measured as the console's.
import { fromBinary } from '@bufbuild/protobuf';
import { type BanBatch, BanBatchSchema } from '../../proto/gen/svc/node/v1/bans_pb.js';
import { type AcmeBatch, AcmeBatchSchema } from '../../proto/gen/svc/node/v1/certificates_pb.js';
import { type ConfigDelta, ConfigDeltaSchema } from '../../proto/gen/svc/node/v1/config_pb.js';
import { type FeedBatch, FeedBatchSchema } from '../../proto/gen/svc/node/v1/feeds_pb.js';
import { type KeysChanged, type Target, WatchEventSchema } from '../../proto/gen/svc/node/v1/node_pb.js';

export type DecodedEvent =
  | { case: 'banBatch'; value: BanBatch }
  | { case: 'configDelta'; value: ConfigDelta }
  | { case: 'target'; value: Target }
  | { case: 'keysChanged'; value: KeysChanged }
  | { case: 'acmeBatch'; value: AcmeBatch }
  | { case: 'feedBatch'; value: FeedBatch }
  | { case: 'other' };

const REMEMBERED = 8;

/** A decoder with a memory of the last few events. */
export function createDecoder(): (bytes: Buffer) => DecodedEvent {
  const memory: { bytes: Buffer; event: DecodedEvent }[] = [];
  return (bytes) => {
    const known = memory.find((entry) => entry.bytes.equals(bytes));
    if (known) return known.event;
    const event = decode(bytes);
    memory.unshift({ bytes: Buffer.from(bytes), event });
    if (memory.length > REMEMBERED) memory.pop();
    return event;
  };
}

function decode(bytes: Buffer): DecodedEvent {
  const { event } = fromBinary(WatchEventSchema, bytes);
  switch (event.case) {
    case 'banBatch':
      return { case: 'banBatch', value: fromBinary(BanBatchSchema, event.value) };
    case 'configDelta':
      return { case: 'configDelta', value: fromBinary(ConfigDeltaSchema, event.value) };
    case 'target':
      return { case: 'target', value: event.value };
    case 'keysChanged':
      return { case: 'keysChanged', value: event.value };
    case 'acmeBatch':
      return { case: 'acmeBatch', value: fromBinary(AcmeBatchSchema, event.value) };
    case 'feedBatch':
      return { case: 'feedBatch', value: fromBinary(FeedBatchSchema, event.value) };
    default:
      return { case: 'other' };
  }
}
