import type { Surface } from '../helpers/surfaces.ts';

export const surface: Surface = {
  calls: async () => ({ bodies: { 'settings.usage.set': { retentionDays: 100 } } }),
};
