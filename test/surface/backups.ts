import { generateBackupKeys } from '../../runtime/backup/keys.ts';
import type { Surface } from '../helpers/surfaces.ts';

const { publicKey } = generateBackupKeys();

export const surface: Surface = {
  async calls(api) {
    // A console that may write backups nowhere refuses to make one.
    const { folders } = await api.ok('GET', '/backups/status');
    const settings = { publicKey, folder: folders[0] ?? '' };
    await api.ok('PUT', '/backups/settings', settings);
    return { bodies: { 'backups.create': {}, 'backups.settings.set': settings } };
  },
  locks: {
    'backups.settings.set': {
      make: async (api) => {
        await api.ok('PUT', '/backups/settings', { publicKey });
        return '/backups/settings';
      },
      request: (path) => ['PUT', path, { publicKey }],
    },
  },
};
