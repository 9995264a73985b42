// Ways in which a message leaves the console.
import type { AlertLocale } from '../../contract/alert-kind.ts';
import type { ChannelConfig, ChannelKind } from '../../contract/resources/alerts.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** A message about an alert. The same in every attempt. */
export interface AlertMessage {
  /** Constant: by it the receiver knows a second copy. */
  id: string;
  locale: AlertLocale;
  /** One line, in the language of the channel. */
  text: string;
  /** Page of the console with more about it. */
  url: string;
  /** Body of a webhook. */
  body: Readonly<Record<string, unknown>>;
}

export type ConfigOf<K extends ChannelKind> = Extract<ChannelConfig, { kind: K }>;

export interface Sender<K extends ChannelKind> {
  /** Throws BAD_REQUEST for a configuration that cannot be right. */
  check(config: ConfigOf<K>): void;
  /** Delivers a message within 10 s; throws `SendFailed`. */
  send(runtime: Runtime, config: ConfigOf<K>, message: AlertMessage): Promise<void>;
}

export const SEND_MS = 10_000;
