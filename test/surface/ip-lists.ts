import type { Surface } from '../helpers/surfaces.ts';

export const surface: Surface = {
  async calls(api) {
    const list = { name: 'kept', kind: 'collection', entries: ['198.51.100.0/24'] };
    const { id } = await api.ok('POST', '/ip-lists', list);
    return {
      paths: { 'ipLists.get': { id }, 'ipLists.update': { id }, 'ipLists.usage': { id } },
      fresh: {
        'ipLists.delete': {
          path: '/ip-lists',
          body: { name: 'ended {n}', kind: 'collection', entries: [] },
          id: ['id'],
          parameter: 'id',
        },
      },
      bodies: {
        'ipLists.create': { ...list, name: 'made {n}' },
        'ipLists.update': { name: 'kept', entries: ['198.51.100.0/24', '203.0.{a}/32'] },
      },
    };
  },
  locks: {
    'ipLists.update': {
      make: async (api, unique) => {
        const list = { name: unique('l').replace('-', '_'), kind: 'block', entries: [] };
        return (await api.ok('POST', '/ip-lists', list)).id;
      },
      request: (id) => ['PUT', `/ip-lists/${id}`, { kind: 'block', entries: ['203.0.113.1'] }],
    },
  },
};
