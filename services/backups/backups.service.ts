import type { ServiceSchema } from 'moleculer';
import { backupSettings, backups } from '../../contract/resources/backups.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { measureBackups } from './backup-metrics.ts';
import { backupStatus, createBackup, listBackups } from './backups.ts';
import { getBackupSettings, setBackupSettings } from './settings.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'backups',
  created: () => measureBackups(runtime),
  mixins: [
    contractService([
      implement(backups.list, (input) => listBackups(runtime, input)),
      implement(backups.create, (_, call) => createBackup(runtime, call)),
      implement(backups.status, () => backupStatus(runtime)),
      implement(backupSettings.get, () => getBackupSettings(runtime)),
      implement(backupSettings.set, (input, call) => setBackupSettings(runtime, input, call)),
    ]),
  ],
});
