// Reads requests of a site as they end, as the Web UI does.
import type { TailFilter, TailLine } from '../../contract/resources/log-tail.ts';
import type { LogEntry } from '../../contract/resources/logs.ts';
import { eventually } from './eventually.ts';

export class TailClient {
  readonly lines: TailLine[] = [];
  /** When each line came, Unix milliseconds. */
  readonly times: number[] = [];
  readonly #abort: AbortController;
  /** Settles when the stream has ended, however. */
  readonly ended: Promise<void>;

  constructor(response: Response, abort: AbortController) {
    this.#abort = abort;
    this.ended = this.#read(response);
  }

  async #read(response: Response): Promise<void> {
    let rest = '';
    const decoder = new TextDecoder();
    try {
      for await (const chunk of response.body!) {
        rest += decoder.decode(chunk as Uint8Array, { stream: true });
        const complete = rest.split('\n');
        rest = complete.pop()!;
        for (const line of complete) {
          this.times.push(Date.now());
          this.lines.push(JSON.parse(line) as TailLine);
        }
      }
    } catch (error) {
      if (!this.#abort.signal.aborted) throw error;
    }
  }

  get entries(): LogEntry[] {
    return this.lines.flatMap((line) => (line.type === 'rows' ? line.entries : []));
  }

  get dropped(): number {
    return this.lines.reduce((sum, line) => sum + (line.type === 'rows' ? line.dropped : 0), 0);
  }

  /** The first row that passes. */
  row(test: (entry: LogEntry) => boolean, what = 'a row'): Promise<LogEntry> {
    return eventually(() => this.entries.find(test), { what });
  }

  async close(): Promise<void> {
    this.#abort.abort();
    await this.ended;
  }
}

export interface TailOptions extends TailFilter {
  cookie: string;
  id: string;
}

/** Opens a tail; throws unless it begins. */
export async function watchTail(url: string, options: TailOptions): Promise<TailClient> {
  const { response, abort } = await requestTail(url, options);
  if (response.status !== 200) throw new Error(`logs.tail: ${response.status} ${await response.text()}`);
  return new TailClient(response, abort);
}

/** Asks for a tail; any response. */
export async function requestTail(
  url: string,
  { cookie, ...input }: TailOptions,
): Promise<{ response: Response; abort: AbortController }> {
  const abort = new AbortController();
  const response = await fetch(`${url}/rpc/logs/tail`, {
    method: 'POST',
    headers: { cookie, 'content-type': 'application/json', 'x-csrf-token': 'orpc' },
    body: JSON.stringify(input),
    signal: abort.signal,
  });
  return { response, abort };
}
