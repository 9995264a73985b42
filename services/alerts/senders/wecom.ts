// Robots of WeCom: a text message.
import type { Sender } from '../sender.ts';
import { assertAccepted } from './accepted.ts';
import { postJson } from './post.ts';
import { assertUrl } from './service-url.ts';

export const wecom: Sender<'wecom'> = {
  check: ({ url }) => assertUrl(url, 'qyapi.weixin.qq.com'),
  async send(runtime, { url }, { text, url: page }) {
    const content = `${text}\n${page}`;
    const answer = await postJson(runtime, new URL(url), { msgtype: 'text', text: { content } });
    assertAccepted(answer, ({ errcode }) => errcode === 0);
  },
};
