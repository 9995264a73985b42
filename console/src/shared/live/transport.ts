// How a tab gets live updates: from the worker all tabs share; where browsers have none, from the one tab that reads for
// all; where tabs cannot agree on one, not at all, and pages ask by themselves.
import { LiveReader } from './live-reader.ts';
import type { LiveMessage, TabMessage } from './message.ts';
import workerAddress from './worker.ts?sharedworker&url';

export interface Transport {
  /** Begins to tell; also after a sign-in, when the stream may have ended. */
  hello(): void;
  bye(): void;
}

type Tell = (message: LiveMessage) => void;

const NAME = 'svc-live';
/** The name that the console's policy allows. */
const POLICY = 'svc-console';

export function openTransport(tell: Tell): Transport {
  if (typeof SharedWorker === 'function') return workerTransport(tell);
  return leaderTransport(tell);
}

function workerTransport(tell: Tell): Transport {
  let other: Transport | null = null;
  const worker = new SharedWorker(trusted(workerAddress) as string, {
    name: NAME,
    type: import.meta.env.DEV ? 'module' : 'classic',
  });
  worker.port.onmessage = ({ data }: MessageEvent<LiveMessage>) => {
    if (!other) tell(data);
  };
  worker.onerror = () => {
    other ??= leaderTransport(tell);
    other.hello();
  };
  const post = (message: TabMessage) => worker.port.postMessage(message);
  return {
    hello: () => (other ? other.hello() : post('hello')),
    bye: () => (other ? other.bye() : post('bye')),
  };
}

const nothing = () => undefined;

/** The address as a script's, under a page that demands to be told so. */
function trusted(address: string): unknown {
  const { trustedTypes } = window as unknown as {
    trustedTypes?: { createPolicy(name: string, rules: object): { createScriptURL(address: string): unknown } };
  };
  return trustedTypes?.createPolicy(POLICY, { createScriptURL: () => address }).createScriptURL(address) ?? address;
}

/** The tab that holds the lock reads and tells the others; when it goes, the next one goes on from where it was. */
function leaderTransport(tell: Tell): Transport {
  if (!('locks' in navigator) || typeof BroadcastChannel !== 'function') return { hello: nothing, bye: nothing };
  const channel = new BroadcastChannel(NAME);
  let cursor: string | null = null;
  let reader: LiveReader | null = null;
  let leave: (() => void) | null = null;
  let waiting: AbortController | null = null;
  const learn = (message: LiveMessage) => {
    if ('cursor' in message) cursor = message.cursor;
    tell(message);
  };
  const lead = () =>
    new Promise<void>((resolve) => {
      leave = resolve;
      reader = new LiveReader((message) => {
        channel.postMessage(message);
        learn(message);
      }, cursor);
      reader.start();
    });
  channel.onmessage = ({ data }: MessageEvent<LiveMessage | TabMessage>) => {
    if (data === 'hello') {
      reader?.start();
      if (reader) channel.postMessage({ kind: 'state', state: reader.state } satisfies LiveMessage);
    } else if (data !== 'bye') learn(data);
  };
  return {
    hello() {
      if (reader) reader.start();
      else if (!waiting) {
        waiting = new AbortController();
        navigator.locks.request(NAME, { signal: waiting.signal }, lead).catch(() => undefined);
      }
      channel.postMessage('hello' satisfies TabMessage);
    },
    bye() {
      reader?.stop();
      reader = null;
      leave?.();
      leave = null;
      waiting?.abort();
      waiting = null;
    },
  };
}
