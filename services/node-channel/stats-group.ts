// Which batches are stored together: those of the running minutes first, and of what piled up in nodes only so much at a time
// that bans, heartbeats and changes have room beside it.
import type { StatsBatch } from './stats-report.ts';

/** Batches of the running minutes, and those from before. */
export type Lane = 'current' | 'late';

type Batch = Pick<StatsBatch, 'completeUntil' | 'rows' | 'rules' | 'lists'>;

/** Rows of the database that a batch is at most. */
export function sizeOf({ rows, rules, lists }: Batch): number {
  return rows.length + rules + lists;
}

/** A node says with its last batch only how far it is complete; a question has no rows. */
export function laneOf({ completeUntil, rows }: Batch): Lane {
  return completeUntil === null && rows.length > 0 ? 'late' : 'current';
}

/** Splits what waits, in its order, into what is stored now and what waits on: the first of each lane in any case. */
export function takeGroup<T extends { batch: Batch }>(
  waiting: readonly T[],
  mostRows: Readonly<Record<Lane, number>>,
): { group: T[]; left: T[] } {
  const group: T[] = [];
  const left: T[] = [];
  const taken = { current: 0, late: 0 };
  for (const each of waiting) {
    const lane = laneOf(each.batch);
    const rows = taken[lane] + sizeOf(each.batch);
    const hasRoom = taken[lane] === 0 || rows <= mostRows[lane];
    (hasRoom ? group : left).push(each);
    // Those behind one without room do not overtake it.
    taken[lane] = hasRoom ? rows : Number.POSITIVE_INFINITY;
  }
  return { group, left };
}
