/**
 * A row for each session that waits for a lock of the one that asks. Asking for waits of any session would see those of other
 * tests on the same server, and of background jobs.
 */
export const WAITS_FOR_THIS_SESSION =
  'select 1 from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))';
