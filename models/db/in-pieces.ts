// Work on many rows a piece at a time, so that what is waited for has the database between two pieces.

/** Waits after work on the database that took so many milliseconds. */
export type Rest = (ms: number) => Promise<void>;

/** Takes pieces until one says that there are no more. `signal` ends it early; without `rest` it goes on at once. */
export async function inPieces(take: () => Promise<boolean>, signal?: AbortSignal, rest?: Rest): Promise<void> {
  for (let more = true; more && !signal?.aborted; ) {
    const begun = performance.now();
    more = await take();
    if (more) await rest?.(performance.now() - begun);
  }
}
