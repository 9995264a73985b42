import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { HOUR_MS, SECOND_MS, sweep } from '../../mixins/sweep.ts';
import { backupFacts, failAbandonedBackups, purgeBackups } from '../../models/backups/backup.ts';
import { readBackupSettings } from '../../models/backups/backup-settings.ts';
import { backupTimes } from './due.ts';
import { makeBackup } from './make-backup.ts';

export const feature = {
  jobs: [
    {
      name: 'make-backup',
      everyMs: 2 * SECOND_MS,
      deadlineMs: 6 * HOUR_MS,
      where: ({ backupDirs }) => backupDirs.length > 0,
      run: makeBackup,
    },
    { name: 'fail-abandoned-backups', everyMs: 5 * SECOND_MS, run: ({ pools }) => failAbandonedBackups(pools.api) },
    sweep('purge-backups', HOUR_MS, purgeBackups),
  ],
  alerts: {
    kinds: ['backup_late'],
    async find(sql) {
      const times = backupTimes(await readBackupSettings(sql), await backupFacts(sql));
      if (times === null || Date.now() <= times.lateAt.getTime()) return [];
      return [{ kind: 'backup_late', subject: 'installation', id: '' }];
    },
  },
} satisfies ServiceFeature;
