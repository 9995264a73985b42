import test from 'ava';
import { DEFAULT_BACKUP_SETTINGS } from '../../../../models/backups/backup-settings.ts';
import { backupTimes } from '../../../../services/backups/due.ts';

const AT = '2026-01-01T00:00:00.000Z';
const hours = (count: number) => new Date(Date.parse(AT) + count * 3_600_000);
const settings = { ...DEFAULT_BACKUP_SETTINGS, enabled: true, enabledAt: AT, updatedAt: AT };
const none = { lastGoodAt: null, failedAt: null };

test('without a schedule no backup is due and none is late', (t) => {
  t.is(backupTimes({ ...settings, enabled: false, enabledAt: null }, none), null);
});

test('the first backup is due at once, and late two hours after the interval', (t) => {
  t.deepEqual(backupTimes(settings, none), { nextAt: hours(0), lateAt: hours(26) });
});

test('a backup is due an interval after the last good one began', (t) => {
  t.deepEqual(backupTimes({ ...settings, intervalHours: 6 }, { ...none, lastGoodAt: hours(1) }), {
    nextAt: hours(7),
    lateAt: hours(9),
  });
});

test('a failed backup is tried again after 15 minutes', (t) => {
  const times = backupTimes(settings, { lastGoodAt: hours(1), failedAt: hours(25.5) });
  t.deepEqual(times, { nextAt: hours(25.75), lateAt: hours(27) });
});

test('a schedule that was switched on is not late at once, however old the last backup is', (t) => {
  t.deepEqual(backupTimes(settings, { ...none, lastGoodAt: hours(-1000) })?.lateAt, hours(26));
});
