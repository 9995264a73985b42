// Cursors of GET /usage: the place behind the last record of a page. Opaque to clients.
import { WINDOW_MS } from '../../contract/resources/usage.ts';
import type { UsagePlace } from '../../models/usage/usage-record.ts';

const FORM = /^1 ([0-9]{1,9}) ([A-Za-z0-9_-]{1,64})$/;

export function writeCursor({ windowStart, siteId }: UsagePlace): string {
  return Buffer.from(`1 ${windowStart / WINDOW_MS} ${siteId}`).toString('base64url');
}

/** Null for what {@link writeCursor} never wrote. */
export function readCursor(text: string): UsagePlace | null {
  const [, window, siteId] = FORM.exec(Buffer.from(text, 'base64url').toString()) ?? [];
  if (window === undefined || siteId === undefined) return null;
  const place = { windowStart: Number(window) * WINDOW_MS, siteId };
  return writeCursor(place) === text ? place : null;
}
