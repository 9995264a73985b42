import type { Surface } from '../helpers/surfaces.ts';

export const surface: Surface = {
  calls: async () => ({
    bodies: { 'rules.validate': { expression: 'http.host eq "{n}.example.com"', phase: 'waf-custom' } },
  }),
};
