// The worker that all tabs of a browser share: one stream, told to every tab.
import { LiveReader } from './live-reader.ts';
import type { LiveMessage, TabMessage } from './message.ts';
import { RecentEvents } from './recent-events.ts';

/** As a shared worker sees itself; the types of the page's window are others. */
interface SharedWorkerScope {
  onconnect: ((event: MessageEvent) => void) | null;
  addEventListener(type: 'online', listener: () => void): void;
}

const scope = globalThis as unknown as SharedWorkerScope;
const tabs = new Set<MessagePort>();
const recent = new RecentEvents();
const reader = new LiveReader((message) => {
  if (message.kind === 'events') recent.add(message);
  for (const tab of tabs) tab.postMessage(message);
});

scope.onconnect = ({ ports: [port] }) => {
  if (!port) return;
  port.onmessage = ({ data }: MessageEvent<TabMessage>) => {
    if (data === 'bye') tabs.delete(port);
    else {
      const fresh = !tabs.has(port);
      tabs.add(port);
      reader.start();
      port.postMessage({ kind: 'state', state: reader.state } satisfies LiveMessage);
      // What it shows was read before it could be told anything.
      if (fresh) for (const message of recent.all()) port.postMessage(message);
    }
    if (tabs.size === 0) reader.stop();
  };
};
scope.addEventListener('online', () => {
  if (tabs.size > 0) reader.start();
});
