// One stream of the console: lines of JSON until one side ends it. Knows no page, and runs in the worker as well.

/** The console sends something every 15 s; after this the connection is dead. */
const SILENT_MS = 40_000;

export interface StreamOptions {
  /** Ended with the stream, or ends it. */
  abort: AbortController;
  /** false: the stream is not read any further. */
  take(line: unknown): boolean;
}

/** Reads until the stream ends; a refusal is returned unread. Throws where the connection fails. */
export async function readStream(address: string, input: object, { abort, take }: StreamOptions): Promise<Response> {
  let watchdog = setTimeout(() => abort.abort(), SILENT_MS);
  try {
    const response = await fetch(address, {
      method: 'POST',
      credentials: 'same-origin',
      cache: 'no-store',
      headers: { 'content-type': 'application/json', 'x-csrf-token': 'orpc' },
      body: JSON.stringify(input),
      signal: abort.signal,
    });
    if (!response.ok || !response.body) return response;
    let rest = '';
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => abort.abort(), SILENT_MS);
      const lines = (rest + part.value).split('\n');
      rest = lines.pop() ?? '';
      if (!lines.every((text) => take(JSON.parse(text)))) break;
    }
    return response;
  } finally {
    clearTimeout(watchdog);
  }
}
