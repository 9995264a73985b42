import type { Surface } from '../helpers/surfaces.ts';

export const surface: Surface = {
  async calls() {
    const body = { origin: { address: '127.0.0.1' }, path: '/{n}' };
    return { bodies: { 'sites.tryOrigin': body, 'sites.tryOriginFromNode': body } };
  },
};
