// Robots of DingTalk: a text message, signed where the robot has a secret.
import { createHmac } from 'node:crypto';
import type { Sender } from '../sender.ts';
import { assertAccepted } from './accepted.ts';
import { postJson } from './post.ts';
import { assertUrl } from './service-url.ts';

export const dingtalk: Sender<'dingtalk'> = {
  check: ({ url }) => assertUrl(url, 'oapi.dingtalk.com'),
  async send(runtime, { url, secret }, { text, url: page }) {
    const signed = new URL(url);
    if (secret !== undefined) {
      const timestamp = String(Date.now());
      signed.searchParams.set('timestamp', timestamp);
      signed.searchParams.set('sign', createHmac('sha256', secret).update(`${timestamp}\n${secret}`).digest('base64'));
    }
    const content = `${text}\n${page}`;
    assertAccepted(
      await postJson(runtime, signed, { msgtype: 'text', text: { content } }),
      ({ errcode }) => errcode === 0,
    );
  },
};
