// Many bans, one call each: a few at a time, a result per address. It can be stopped and gone on with. Pure.

export const MAX_ADDRESSES = 1000;
const IN_FLIGHT = 8;
const TRIES = 3;

export interface BulkFailure {
  code: string;
  /** Whether the same call may well succeed a little later. */
  retryable: boolean;
}

export interface BulkRow<F extends BulkFailure> {
  cidr: string;
  state: 'waiting' | 'running' | 'done' | 'failed';
  failure: F | null;
}

export interface BulkRun<F extends BulkFailure> {
  rows: BulkRow<F>[];
  running: boolean;
  /** Why it stopped before its end: asked to, or no ban more is taken. */
  stopped: '' | 'asked' | 'limit';
}

/** Bans an address; answers why not. */
export type BanOne<F extends BulkFailure> = (cidr: string) => Promise<F | null>;

export function progressOf(rows: readonly Pick<BulkRow<BulkFailure>, 'state'>[]): {
  done: number;
  failed: number;
  left: number;
} {
  const progress = { done: 0, failed: 0, left: 0 };
  for (const { state } of rows) progress[state === 'done' || state === 'failed' ? state : 'left']++;
  return progress;
}

export function rowsOf<F extends BulkFailure>(addresses: readonly string[]): BulkRow<F>[] {
  return addresses.slice(0, MAX_ADDRESSES).map((cidr) => ({ cidr, state: 'waiting', failure: null }));
}

/** Bans what is not banned yet, failed ones again; ends when all have an answer or `run.stopped` is set. */
export async function runBulk<F extends BulkFailure>(
  run: BulkRun<F>,
  ban: BanOne<F>,
  pause: (attempt: number) => Promise<void>,
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
      await banRow(run, row, ban, pause);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  run.running = false;
}

async function banRow<F extends BulkFailure>(
  run: BulkRun<F>,
  row: BulkRow<F>,
  ban: BanOne<F>,
  pause: (attempt: number) => Promise<void>,
): Promise<void> {
  row.state = 'running';
  for (let attempt = 1; ; attempt++) {
    const failure = await ban(row.cidr);
    if (failure === null) {
      row.state = 'done';
      return;
    }
    if (failure.code === 'BAN_PLATFORM_LIMIT') {
      run.stopped = 'limit';
      row.state = 'waiting';
      return;
    }
    if (!failure.retryable || attempt === TRIES) {
      Object.assign(row, { state: 'failed', failure });
      return;
    }
    await pause(attempt);
  }
}
