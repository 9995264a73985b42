// Headers that no rule may set or remove: delivery, sign-in and the edge itself rest on them.
const PROTECTED = new Set([
  'host',
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'content-length',
  'transfer-encoding',
  'connection',
  'upgrade',
  'te',
  'trailer',
  'cdn-loop',
]);

/** Whether the header, in lower case, is one of them. */
export function isProtectedHeader(name: string): boolean {
  return PROTECTED.has(name) || name.startsWith('x-svc-');
}
