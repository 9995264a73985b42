// A POST with JSON to a URL, signed as Standard Webhooks specifies where the channel has a key.
import { createHmac } from 'node:crypto';
import { badField } from '../../../contract/errors.ts';
import type { Sender } from '../sender.ts';
import { postJson } from './post.ts';
import { assertUrl } from './service-url.ts';

const KEY = /^whsec_([A-Za-z0-9+/]+=*)$/;
const MIN_KEY = 24;
const MAX_KEY = 64;

export const webhook: Sender<'webhook'> = {
  check({ url, signingKey }) {
    assertUrl(url);
    if (signingKey === undefined) return;
    const key = keyOf(signingKey);
    if (key.length < MIN_KEY || key.length > MAX_KEY)
      badField('/config/signingKey', 'format', { format: 'whsec_ and 24 to 64 bytes in base64' });
  },
  async send(runtime, { url, bearer, signingKey }, { id, body }) {
    const timestamp = String(Math.floor(Date.now() / 1000));
    await postJson(runtime, new URL(url), body, (text) => ({
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      ...(signingKey === undefined ? {} : { 'webhook-signature': signatureOf(signingKey, id, timestamp, text) }),
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
    }));
  },
};

/** `v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64. */
export function signatureOf(signingKey: string, id: string, timestamp: string, body: string): string {
  const mac = createHmac('sha256', keyOf(signingKey)).update(`${id}.${timestamp}.${body}`);
  return `v1,${mac.digest('base64')}`;
}

function keyOf(signingKey: string): Buffer {
  return Buffer.from(KEY.exec(signingKey)?.[1] ?? '', 'base64');
}
