// Failures as providers say them, by a table of each provider.
import { AdapterError, type AdapterErrorKind } from '../adapter.ts';

/** `changed`: the record has come or gone since it was read. */
export type Said = AdapterErrorKind | 'changed';

export function saidError(said: Said, detail: string): AdapterError {
  return said === 'changed' ? new AdapterError('conflict', detail, { changed: true }) : new AdapterError(said, detail);
}
