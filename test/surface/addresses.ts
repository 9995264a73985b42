import type { Surface } from '../helpers/surfaces.ts';

export const surface: Surface = {
  calls: async () => ({ paths: { 'addresses.get': { address: '203.0.113.7' } } }),
};
