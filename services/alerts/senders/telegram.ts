// Bots of Telegram: a text message to a chat.
import type { Sender } from '../sender.ts';
import { assertAccepted } from './accepted.ts';
import { postJson } from './post.ts';

export const telegram: Sender<'telegram'> = {
  check: () => undefined,
  async send(runtime, { token, chatId }, { text, url: page }) {
    const url = new URL(`https://api.telegram.org/bot${token}/sendMessage`);
    const answer = await postJson(runtime, url, { chat_id: chatId, text: `${text}\n${page}` });
    assertAccepted(answer, ({ ok }) => ok === true);
  },
};
