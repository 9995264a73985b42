// Entries as rows and as messages.
import { create } from '@bufbuild/protobuf';
import { type Entry, EntrySchema } from '../../proto/gen/svc/config/v1/entry_pb.js';
import { type ConfigPosition, ConfigPositionSchema } from '../../proto/gen/svc/node/v1/config_pb.js';
import type { ConfigPlace } from './config-history.ts';

/** Bytes of bodies in one answer of GetConfig, where what is asked for can be had in several. */
export const PULLED_BYTES = 4 * 1024 * 1024;
/** Bytes of bodies in an answer that is one revision, or one entry: nodes read messages of 32 MiB. */
export const LARGEST_ANSWER_BYTES = 24 * 1024 * 1024;
/** What an entry costs on the wire beside its body, roughly. */
export const ENTRY_OVERHEAD_BYTES = 160;

export interface EntryRow {
  kind: string;
  resource_id: string;
  features: string[] | null;
  /** Null where the entry is gone. */
  body: Buffer | null;
}

export function toEntry(row: EntryRow): Entry {
  return create(EntrySchema, {
    kind: row.kind,
    id: row.resource_id,
    body: row.body!,
    features: row.features ?? [],
  });
}

/** A position as messages carry it. */
export function position({ epoch, track, revision, setHash }: ConfigPlace): ConfigPosition {
  return create(ConfigPositionSchema, { epoch, track, revision, setHash });
}
