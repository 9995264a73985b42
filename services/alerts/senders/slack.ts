// Incoming webhooks of Slack, and of services that take the same.
import type { Sender } from '../sender.ts';
import { postJson } from './post.ts';
import { assertUrl } from './service-url.ts';

export const slack: Sender<'slack'> = {
  check: ({ url }) => assertUrl(url),
  async send(runtime, { url }, { text, url: page }) {
    // Of these characters alone Slack makes links and mentions.
    const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
    await postJson(runtime, new URL(url), { text: `${escaped}\n${page}` });
  },
};
