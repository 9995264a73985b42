// The settings of the past: each published entry refers to a snapshot of what it was compiled from, by the hash of its
// canonical JSON, so that entries with the same settings share one. Entries that were live at a revision name the
// settings of that revision; where a kind had no entry then, it had its defaults.
import { createHash } from 'node:crypto';

export interface SettingsSnapshot {
  /** SHA-256 of `json`, hexadecimal. */
  hash: string;
  json: string;
}

/** The snapshot of settings as they would travel as JSON: the order of their keys makes no difference. */
export function snapshotOf(settings: object): SettingsSnapshot {
  const json = JSON.stringify(settings, (_key, value: unknown) => (isRecord(value) ? sorted(value) : value));
  return { hash: createHash('sha256').update(json).digest('hex'), json };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function sorted(record: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}
