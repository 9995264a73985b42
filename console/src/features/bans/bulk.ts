// Many bans, one call each: a few at a time, a result per address. It outlives its dialog, so that a look elsewhere stops
// nothing, and can be stopped and gone on with.
import { reactive } from 'vue';
import { asCallError, type CallError } from '@/shared/api/call-error.ts';
import { type Terms, termsFor } from './terms.ts';

export const MAX_ADDRESSES = 1000;
const IN_FLIGHT = 8;
const TRIES = 3;
const PAUSE_MS = 400;

export interface BulkRow {
  cidr: string;
  state: 'waiting' | 'running' | 'done' | 'failed';
  error: CallError | null;
}

export interface Bulk {
  /** The same for all rows. */
  terms: Terms;
  rows: BulkRow[];
  running: boolean;
  /** Why it stopped before its end: asked to, or no ban more is taken. */
  stopped: '' | 'asked' | 'limit';
}

/** The run of this browser tab; there is one. */
export const bulk = reactive<Bulk>({ terms: termsFor(''), rows: [], running: false, stopped: '' });

export function progressOf(rows: readonly BulkRow[]): { done: number; failed: number; left: number } {
  const count = (...states: BulkRow['state'][]) => rows.filter(({ state }) => states.includes(state)).length;
  return { done: count('done'), failed: count('failed'), left: count('waiting', 'running') };
}

export function rowsOf(addresses: readonly string[]): BulkRow[] {
  return addresses.slice(0, MAX_ADDRESSES).map((cidr) => ({ cidr, state: 'waiting', error: null }));
}

/** Bans what is not banned yet, failed ones again; ends when all have an answer or `run.stopped` is set. */
export async function runBulk(run: Bulk, ban: (cidr: string) => Promise<unknown>): Promise<void> {
  if (run.running) return;
  run.running = true;
  run.stopped = '';
  const open = run.rows.filter(({ state }) => state !== 'done');
  for (const row of open) Object.assign(row, { state: 'waiting', error: null });
  const worker = async (): Promise<void> => {
    for (let row = open.shift(); row && !run.stopped; row = open.shift()) await banRow(run, row, ban);
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  run.running = false;
}

async function banRow(run: Bulk, row: BulkRow, ban: (cidr: string) => Promise<unknown>): Promise<void> {
  row.state = 'running';
  for (let attempt = 1; ; attempt++) {
    try {
      await ban(row.cidr);
      row.state = 'done';
      return;
    } catch (thrown) {
      const error = asCallError(thrown);
      if (error.code === 'BAN_PLATFORM_LIMIT') {
        run.stopped = 'limit';
        row.state = 'waiting';
        return;
      }
      if (!error.retryable || attempt === TRIES) {
        Object.assign(row, { state: 'failed', error });
        return;
      }
      await new Promise((done) => setTimeout(done, PAUSE_MS * attempt));
    }
  }
}
