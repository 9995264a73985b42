// Makes changes in batches. A batch that may have taken effect is read back; one that the provider does not take is halved
// until the wrong change is alone; a limited rate is waited for as long as the call may take.
import { AdapterError, type Change, type ChangeResult, type RRset } from '../adapter.ts';
import { wrongChange } from './check-change.ts';
import { type Budget, budgetOf, mayRetry, reading } from './pause.ts';
import { holds, setsByKey, type TtlLimits } from './sets.ts';

export interface Writer {
  /** Changes that one write takes at most. */
  batch: number;
  /** Writes at a time; above 1 only with a batch of 1. */
  parallel: number;
  limits: TtlLimits;
  /** Makes all of the changes. Throws {@link AdapterError}: `timeout` if some may have taken effect. */
  write(changes: readonly Change[], budget: Budget): Promise<void>;
  /** Throws {@link AdapterError}. */
  list(names: readonly string[], budget: Budget): Promise<RRset[]>;
}

interface Item {
  index: number;
  change: Change;
}

/** After these, asking for the rest is of no use. */
const ENDING: ReadonlySet<AdapterError['kind']> = new Set([
  'denied',
  'not_found',
  'rate_limited',
  'unavailable',
  'timeout',
  'address_refused',
]);

export async function applyChanges(
  writer: Writer,
  changes: readonly Change[],
  signal: AbortSignal | undefined,
): Promise<ChangeResult[]> {
  const budget = budgetOf(signal);
  const results: ChangeResult[] = new Array(changes.length);
  const items: Item[] = [];
  for (const [index, change] of changes.entries()) {
    const error = wrongChange(change);
    if (error) results[index] = { state: 'failed', error };
    else items.push({ index, change });
  }
  let ended: AdapterError | null = null;
  const lanes = lanesOf(items, writer);
  const workers = Array.from({ length: Math.max(1, writer.parallel) }, async () => {
    for (let lane = lanes.shift(); lane; lane = lanes.shift()) {
      for (const chunk of lane) {
        if (ended) tell(chunk, { state: 'failed', error: ended });
        else await writeChunk(chunk);
      }
    }
  });
  await Promise.all(workers);
  return results;

  function tell(chunk: readonly Item[], result: ChangeResult): void {
    for (const { index } of chunk) results[index] = result;
  }

  async function writeChunk(given: readonly Item[]): Promise<void> {
    let left = given;
    let isDoubtful = false;
    for (let tries = 1; ; tries++) {
      let error: AdapterError;
      try {
        await writer.write(
          left.map(({ change }) => change),
          budget,
        );
        return tell(left, { state: 'done' });
      } catch (thrown) {
        if (!(thrown instanceof AdapterError)) throw thrown;
        error = thrown;
      }
      isDoubtful ||= error.partial;
      if (error.kind === 'timeout') {
        isDoubtful = true;
        const read = await readBack(left, tries < 3);
        if (read === null) {
          ended = error;
          return tell(left, { state: 'unknown', error });
        }
        tell(left.slice(0, read), { state: 'done' });
        left = left.slice(read);
        if (left.length === 0) return;
      } else if (!ENDING.has(error.kind) && left.length > 1) {
        const half = Math.ceil(left.length / 2);
        await writeChunk(left.slice(0, half));
        if (ended) return tell(left.slice(half), { state: 'failed', error: ended });
        return writeChunk(left.slice(half));
      }
      if (await mayRetry(error, tries, budget)) continue;
      if (ENDING.has(error.kind)) ended = error;
      return tell(left, { state: isDoubtful ? 'unknown' : 'failed', error });
    }
  }

  /** How many of the first changes hold; null: nobody knows. */
  async function readBack(chunk: readonly Item[], exactTtl: boolean): Promise<number | null> {
    const names = [...new Set(chunk.map(({ change }) => change.name))];
    try {
      const sets = setsByKey(await reading(budget, () => writer.list(names, budget)));
      const first = chunk.findIndex(({ change }) => !holds(change, sets, writer.limits, exactTtl));
      return first < 0 ? chunk.length : first;
    } catch (error) {
      if (error instanceof AdapterError) return null;
      throw error;
    }
  }
}

/** Chunks that go one after the other; lanes may go beside each other. */
function lanesOf(items: readonly Item[], { batch, parallel }: Writer): Item[][][] {
  if (parallel > 1) {
    return [...Map.groupBy(items, ({ change }) => change.name).values()].map((lane) => lane.map((item) => [item]));
  }
  const chunks: Item[][] = [];
  for (let at = 0; at < items.length; at += batch) chunks.push(items.slice(at, at + batch));
  return [chunks];
}
