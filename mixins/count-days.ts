import { countDay, type Log } from '../models/db/counted-logs.ts';
import type { LeaderJob } from '../runtime/leader.ts';
import { MINUTE_MS } from './sweep.ts';

/** More than any log keeps. */
const MAX_DAYS = 5000;

/** The job that counts the days of a log that are over, one after the other. */
export function countDays(log: Log): LeaderJob {
  return {
    name: `count-days-${log.replace('_', '-')}`,
    everyMs: 10 * MINUTE_MS,
    async run({ pools }, signal) {
      for (let days = 0; days < MAX_DAYS && !signal.aborted; days++) {
        if (!(await countDay(pools.api, log, new Date()))) return;
      }
    },
  };
}
