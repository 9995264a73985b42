import type { Surface } from '../helpers/surfaces.ts';

export const surface: Surface = {
  async calls() {
    return { bodies: { 'sites.tryOrigin': { origin: { address: '127.0.0.1' }, path: '/{n}' } } };
  },
};
