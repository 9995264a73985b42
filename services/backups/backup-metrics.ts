// How old the last good backup is, for whoever scrapes a process of the console.
import { Gauge } from 'prom-client';
import { backupFacts } from '../../models/backups/backup.ts';
import { readBackupSettings } from '../../models/backups/backup-settings.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { backupTimes } from './due.ts';

export function measureBackups({ metrics, pools, log }: Pick<Runtime, 'metrics' | 'pools' | 'log'>): void {
  // What is not known is no value, rather than one of 1970.
  const show = async (gauge: Gauge, read: () => Promise<Date | null>): Promise<void> => {
    gauge.remove();
    try {
      const at = await read();
      if (at) gauge.set(at.getTime() / 1000);
    } catch (err) {
      log.debug({ err }, 'age of backups not read');
    }
  };
  new Gauge({
    name: 'svc_backup_last_good_timestamp_seconds',
    help: 'When the last good backup by schedule or request began; absent: there is none.',
    registers: [metrics],
    collect() {
      return show(this, async () => (await backupFacts(pools.api)).lastGoodAt);
    },
  });
  new Gauge({
    name: 'svc_backup_late_timestamp_seconds',
    help: 'When the alert backup_late begins unless there is a new backup; absent: there is no schedule.',
    registers: [metrics],
    collect() {
      return show(this, async () => {
        const [settings, facts] = await Promise.all([readBackupSettings(pools.api), backupFacts(pools.api)]);
        return backupTimes(settings, facts)?.lateAt ?? null;
      });
    },
  });
}
