import type { Surface } from '../helpers/surfaces.ts';

export const surface: Surface = {
  async calls(api) {
    const { id } = await api.ok('POST', '/regions', { name: 'Kept', code: 'kept' });
    return {
      paths: { 'regions.update': { id } },
      fresh: {
        'regions.delete': { path: '/regions', body: { name: 'Ended {n}', code: 'e{n}' }, id: ['id'], parameter: 'id' },
      },
      bodies: {
        'regions.create': { name: 'Made {n}', code: 'm{n}' },
        'regions.update': { name: 'Renamed {n}' },
      },
    };
  },
  locks: {
    'regions.update': {
      make: async (api, unique) => (await api.ok('POST', '/regions', { name: 'r', code: unique('r') })).id,
      request: (id, unique) => ['PATCH', `/regions/${id}`, { name: unique('s') }],
    },
  },
};
