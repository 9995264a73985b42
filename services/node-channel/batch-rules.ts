// Which batch counts. An enrolment numbers its batches from 1 without a hole, and the console stores how far it is.
//
// | The batch's number is     | and                                    | then                                         |
// | ≤ cursor                  |                                        | known: acknowledged, not counted             |
// | cursor + 1                |                                        | counted                                      |
// | beyond cursor + 1         | nothing before it is held any more     | counted, and the time between is a gap       |
// | beyond cursor + 1         | the agent does not say what it holds   | counted                                      |
// | beyond cursor + 1         | earlier ones are held                  | early: not stored; it begins at cursor + 1   |

/** How far the batches of an enrolment are stored; times in milliseconds, null where they are not known. */
export interface BatchCursor {
  sequence: bigint;
  watermark: number | null;
  storedAt: number | null;
}

export interface BatchHead {
  sequence: bigint;
  /** The oldest batch that the node still has; 0: it does not say. */
  firstHeld: bigint;
}

export type BatchVerdict = 'known' | 'next' | 'next_after_gap' | 'early';

export function judgeBatch(cursor: Pick<BatchCursor, 'sequence'>, { sequence, firstHeld }: BatchHead): BatchVerdict {
  if (sequence <= cursor.sequence) return 'known';
  if (sequence === cursor.sequence + 1n || firstHeld === 0n) return 'next';
  return firstHeld >= sequence ? 'next_after_gap' : 'early';
}

export interface Span {
  from: number;
  to: number;
}

/**
 * The time that skipped batches were about: from what the console is sure to have to where the batch begins. Batches
 * that were stored tell it; without any the gap begins where the batch does.
 */
export function skippedSpan(cursor: BatchCursor, batchFrom: number): Span {
  const from = cursor.watermark ?? cursor.storedAt ?? batchFrom;
  return { from: Math.min(from, batchFrom), to: batchFrom };
}
