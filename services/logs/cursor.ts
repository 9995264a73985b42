// Cursors of logs: the place behind the last row of a page. Opaque to clients.
import type { LogPlace } from '../../models/logs/log-reader.ts';

const FORM = /^1 ([0-9]{1,15}) ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

export function writeCursor({ at, id }: LogPlace): string {
  return Buffer.from(`1 ${at} ${id}`).toString('base64url');
}

/** Null for what {@link writeCursor} never wrote. */
export function readCursor(text: string): LogPlace | null {
  const [, at, id] = FORM.exec(Buffer.from(text, 'base64url').toString()) ?? [];
  if (at === undefined || id === undefined) return null;
  const place = { at: Number(at), id };
  return writeCursor(place) === text ? place : null;
}
