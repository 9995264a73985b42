import type { ChannelConfig, ChannelKind } from '../../../contract/resources/alerts.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { AlertMessage, Sender } from '../sender.ts';
import { dingtalk } from './dingtalk.ts';
import { email } from './email.ts';
import { slack } from './slack.ts';
import { telegram } from './telegram.ts';
import { webhook } from './webhook.ts';
import { wecom } from './wecom.ts';

const SENDERS: { readonly [K in ChannelKind]: Sender<K> } = { webhook, email, dingtalk, wecom, telegram, slack };

/** Throws BAD_REQUEST. */
export function checkConfig(config: ChannelConfig): void {
  SENDERS[config.kind].check(config as never);
}

/** Throws `SendFailed`. */
export function sendMessage(runtime: Runtime, config: ChannelConfig, message: AlertMessage): Promise<void> {
  return SENDERS[config.kind].send(runtime, config as never, message);
}
