// Reads the stream of live updates as the Web UI does, line by line.
import type { LiveEvent, LiveLine } from '../../contract/resources/live.ts';
import { eventually } from './eventually.ts';

export interface LiveOptions {
  cookie: string;
  cursor?: string | null;
  headers?: Record<string, string>;
}

export class LiveClient {
  readonly lines: LiveLine[] = [];
  readonly response: Response;
  readonly #abort: AbortController;
  /** Settles when the stream has ended, however. */
  readonly ended: Promise<void>;

  constructor(response: Response, abort: AbortController) {
    this.response = response;
    this.#abort = abort;
    this.ended = this.#read();
  }

  async #read(): Promise<void> {
    let rest = '';
    const decoder = new TextDecoder();
    try {
      for await (const chunk of this.response.body!) {
        rest += decoder.decode(chunk as Uint8Array, { stream: true });
        const complete = rest.split('\n');
        rest = complete.pop()!;
        this.lines.push(...complete.map((line) => JSON.parse(line) as LiveLine));
      }
    } catch (error) {
      if (!this.#abort.signal.aborted) this.lines.push({ type: 'broken', error: String(error) } as never);
    }
  }

  get last(): LiveLine | undefined {
    return this.lines.at(-1);
  }

  /** The newest cursor. */
  get cursor(): string {
    return this.lines.flatMap((line) => ('cursor' in line ? [line.cursor] : [])).at(-1)!;
  }

  /** Every event so far, in order. */
  get events(): LiveEvent[] {
    return this.lines.flatMap((line) => (line.type === 'events' ? line.events : []));
  }

  /** Ids told of a topic, in the order and number they came. */
  ids(topic: LiveEvent['topic']): string[] {
    return this.events.filter((event) => event.topic === topic).flatMap(({ ids }) => ids ?? ['*']);
  }

  line(type: LiveLine['type'], count = 1): Promise<LiveLine> {
    return eventually(() => this.lines.filter((line) => line.type === type)[count - 1], {
      what: `line ${count} of type ${type}; there are ${JSON.stringify(this.lines.slice(-5))}`,
    });
  }

  told(topic: LiveEvent['topic'], id: string): Promise<true> {
    return eventually<true>(() => this.ids(topic).includes(id) && true, {
      what: `${topic} ${id}; there are ${JSON.stringify(this.lines.slice(-5))}`,
    });
  }

  async close(): Promise<void> {
    this.#abort.abort();
    await this.ended;
  }
}

/** Opens a stream; throws unless it begins. */
export async function watchLive(url: string, options: LiveOptions): Promise<LiveClient> {
  const { response, abort } = await requestLive(url, options);
  if (response.status !== 200) throw new Error(`live.watch: ${response.status} ${await response.text()}`);
  return new LiveClient(response, abort);
}

/** Asks for a stream; any answer. */
export async function requestLive(
  url: string,
  { cookie, cursor, headers = {} }: LiveOptions,
): Promise<{ response: Response; abort: AbortController }> {
  const abort = new AbortController();
  const response = await fetch(`${url}/rpc/live/watch`, {
    method: 'POST',
    headers: { cookie, 'content-type': 'application/json', 'x-csrf-token': 'orpc', ...headers },
    body: JSON.stringify(cursor === undefined ? {} : { cursor }),
    signal: abort.signal,
  });
  return { response, abort };
}
