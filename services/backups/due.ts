// When the next backup begins, and when the last good one is too old.
import { HOUR_MS, MINUTE_MS } from '../../mixins/sweep.ts';
import type { BackupFacts } from '../../models/backups/backup.ts';
import type { StoredBackupSettings } from '../../models/backups/backup-settings.ts';

/** After a failed one. */
const RETRY_MS = 15 * MINUTE_MS;
/** Time for a backup itself, and for some that fail. */
const LATE_AFTER_MS = 2 * HOUR_MS;

export interface BackupTimes {
  nextAt: Date;
  lateAt: Date;
}

/** Null without a schedule. */
export function backupTimes(
  { enabled, enabledAt, intervalHours }: StoredBackupSettings,
  { lastGoodAt, failedAt }: BackupFacts,
): BackupTimes | null {
  if (!enabled || enabledAt === null) return null;
  const since = new Date(enabledAt).getTime();
  const intervalMs = intervalHours * HOUR_MS;
  const due = lastGoodAt === null ? since : lastGoodAt.getTime() + intervalMs;
  const retry = failedAt === null ? 0 : failedAt.getTime() + RETRY_MS;
  // A schedule that begins is not late at once, however old the last backup is.
  const fresh = Math.max(lastGoodAt?.getTime() ?? 0, since);
  return { nextAt: new Date(Math.max(due, retry)), lateAt: new Date(fresh + intervalMs + LATE_AFTER_MS) };
}
