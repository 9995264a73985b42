// W3C Trace Context: `traceparent` goes with each call between processes, from a client's request on.
import { randomBytes } from 'node:crypto';

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(-.*)?$/;

/** The traceparent of what is called: in the trace of `above`, or in a new one where that is none. */
export function traceparent(above: string | undefined): string {
  const [, trace = randomBytes(16).toString('hex'), flags = '00'] = TRACEPARENT.exec(above ?? '') ?? [];
  return `00-${trace}-${randomBytes(8).toString('hex')}-${flags}`;
}

/** The id of its trace. */
export function traceId(value: string): string {
  return value.slice(3, 35);
}
