// Pauses before the next try: longer each time, and never the same for all browsers, or they would come back at once.

const FIRST_MS = 500;
const LONGEST_MS = 30_000;

/** Milliseconds before try `attempt` (0, 1, 2 …); `random` is 0 to 1. */
export function pauseBefore(attempt: number, random = Math.random()): number {
  const full = Math.min(FIRST_MS * 2 ** attempt, LONGEST_MS);
  return full / 2 + (full / 2) * random;
}
