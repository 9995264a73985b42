import type { AlertKindEntries } from '../alert-kind.ts';
import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  BACKUP_FOLDER_REFUSED: entry(
    400,
    'Backups cannot be written to `folder`; `data.reason` says why. Choose another one.',
  ),
  BACKUP_KEY_INVALID: entry(
    400,
    '`publicKey` is not a public key of backups. Make a pair with `npm run backup -- keygen`.',
  ),
  BACKUP_NOT_SET: entry(409, 'No folder or no public key is set for backups. Save both first.'),
  BACKUP_RUNNING: entry(409, 'A backup is waiting or running. Wait until it has ended.'),
} satisfies ErrorEntries;

export const alerts = {
  backup_late: {
    order: 130,
    audience: 'everything',
    text: {
      en: { firing: 'The last good backup of {name} is too old.', resolved: 'There is a new backup of {name}.' },
      'zh-CN': { firing: '{name}最近一次成功的备份已过旧。', resolved: '{name}已有新的备份。' },
    },
  },
} satisfies AlertKindEntries;
