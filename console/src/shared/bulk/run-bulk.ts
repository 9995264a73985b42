// The same deed for many things, one call each: a few at a time, a result per thing. It can be stopped and gone on with.
// Pure.

export const MAX_ITEMS = 1000;
const IN_FLIGHT = 8;
const TRIES = 3;

export interface BulkFailure {
  code: string;
  /** Whether the same call may well succeed a little later. */
  retryable: boolean;
}

export interface BulkItem {
  key: string;
  label: string;
}

export interface BulkRow<F extends BulkFailure> extends BulkItem {
  state: 'waiting' | 'running' | 'done' | 'failed';
  failure: F | null;
}

export interface BulkRun<F extends BulkFailure> {
  rows: BulkRow<F>[];
  running: boolean;
  /** Why it stopped before its end: asked to, or all further calls would be refused alike. */
  stopped: '' | 'asked' | 'limit';
}

/** Does it for one; answers why not. */
export type DoOne<F extends BulkFailure> = (key: string) => Promise<F | null>;

export interface BulkWays {
  pause(attempt: number): Promise<void>;
  /** Error code after which no other call can succeed. */
  limit?: string;
}

export function progressOf(rows: readonly Pick<BulkRow<BulkFailure>, 'state'>[]): {
  done: number;
  failed: number;
  left: number;
} {
  const progress = { done: 0, failed: 0, left: 0 };
  for (const { state } of rows) progress[state === 'done' || state === 'failed' ? state : 'left']++;
  return progress;
}

export function rowsOf<F extends BulkFailure>(items: readonly BulkItem[]): BulkRow<F>[] {
  return items.slice(0, MAX_ITEMS).map(({ key, label }) => ({ key, label, state: 'waiting', failure: null }));
}

/** Does what is not done yet, failed ones again; ends when all have an answer or `run.stopped` is set. */
export async function runBulk<F extends BulkFailure>(
  run: BulkRun<F>,
  doOne: DoOne<F>,
  { pause, limit }: BulkWays,
): Promise<void> {
  if (run.running) return;
  run.running = true;
  run.stopped = '';
  const open = run.rows.filter(({ state }) => state !== 'done');
  for (const row of open) Object.assign(row, { state: 'waiting', failure: null });
  const worker = async (): Promise<void> => {
    while (!run.stopped) {
      const row = open.shift();
      if (!row) return;
      const failure = await tryRow(row, doOne, { pause, limit: limit ?? '' });
      if (failure && failure.code === limit) {
        run.stopped = 'limit';
        row.state = 'waiting';
      } else Object.assign(row, { state: failure ? 'failed' : 'done', failure });
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  run.running = false;
}

async function tryRow<F extends BulkFailure>(
  row: BulkRow<F>,
  doOne: DoOne<F>,
  { pause, limit }: Required<BulkWays>,
): Promise<F | null> {
  row.state = 'running';
  for (let attempt = 1; ; attempt++) {
    const failure = await doOne(row.key);
    if (failure === null || failure.code === limit || !failure.retryable || attempt === TRIES) return failure;
    await pause(attempt);
  }
}
