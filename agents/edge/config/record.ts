// Records of the configuration journal: built around entries that are already encoded, read back as places in the file.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { type EntryKey, EntryKeySchema } from '../../../proto/gen/svc/config/v1/entry_pb.js';
import { type JournalHeader, JournalRecordSchema } from '../../../proto/gen/svc/edge/v1/edge_pb.js';
import { type ConfigPosition, ConfigPositionSchema } from '../../../proto/gen/svc/node/v1/config_pb.js';
import { fieldHeader, readFields } from './wire.ts';

export const JOURNAL_FORMAT = 1;
const RECORD_CONFIG = 2;
const CHANGE_POSITION = 1;
const CHANGE_UPSERTS = 2;
const CHANGE_DELETES = 3;
const CHANGE_UNSERVED = 4;

export interface Place {
  start: number;
  end: number;
}

/** First record of both journals. */
export function encodeHeader(nodeId: string, clusterId: string): Uint8Array {
  return toBinary(
    JournalRecordSchema,
    create(JournalRecordSchema, { record: { case: 'header', value: { format: JOURNAL_FORMAT, nodeId, clusterId } } }),
  );
}

/** The header a payload holds; undefined when it is another record or none. */
export function decodeHeader(payload: Uint8Array): JournalHeader | undefined {
  try {
    const { record } = fromBinary(JournalRecordSchema, payload);
    return record.case === 'header' ? record.value : undefined;
  } catch {
    return undefined;
  }
}

/** A record and where each entry's bytes lie in it. */
export function encodeConfigRecord(
  position: ConfigPosition | undefined,
  upserts: readonly Uint8Array[],
  deletes: readonly EntryKey[],
  unserved: readonly EntryKey[] = [],
): { payload: Buffer; places: Place[] } {
  const parts: Uint8Array[] = [];
  const places: Place[] = [];
  let length = 0;
  const field = (number: number, content: Uint8Array): void => {
    const header = fieldHeader(number, content.length);
    parts.push(header, content);
    length += header.length + content.length;
  };
  for (const entry of upserts) {
    field(CHANGE_UPSERTS, entry);
    places.push({ start: length - entry.length, end: length });
  }
  for (const key of deletes) field(CHANGE_DELETES, toBinary(EntryKeySchema, key));
  for (const key of unserved) field(CHANGE_UNSERVED, toBinary(EntryKeySchema, key));
  if (position) field(CHANGE_POSITION, toBinary(ConfigPositionSchema, position));
  const outer = fieldHeader(RECORD_CONFIG, length);
  for (const place of places) {
    place.start += outer.length;
    place.end += outer.length;
  }
  return { payload: Buffer.concat([outer, ...parts], outer.length + length), places };
}

/** Calls back for what a record of the configuration journal says; throws when it is not one. */
export function readConfigRecord(
  payload: Buffer,
  on: {
    upsert: (start: number, end: number) => void;
    remove: (key: EntryKey) => void;
    unserved?: (key: EntryKey) => void;
    position: (position: ConfigPosition) => void;
  },
): void {
  readFields(payload, 0, payload.length, (number, start, end) => {
    if (number !== RECORD_CONFIG) throw new RangeError('not a configuration record');
    readFields(payload, start, end, (inner, from, to) => {
      if (inner === CHANGE_UPSERTS) on.upsert(from, to);
      else if (inner === CHANGE_DELETES) on.remove(fromBinary(EntryKeySchema, payload.subarray(from, to)));
      else if (inner === CHANGE_UNSERVED) on.unserved?.(fromBinary(EntryKeySchema, payload.subarray(from, to)));
      else if (inner === CHANGE_POSITION) on.position(fromBinary(ConfigPositionSchema, payload.subarray(from, to)));
    });
  });
}
