import type { Surface } from '../helpers/surfaces.ts';

export const surface: Surface = {
  async calls(api) {
    const { id } = await api.site((await api.ok('GET', '/clusters')).items[0].id, 'explained.example.net');
    const request = { url: 'https://explained.example.net/{n}', address: '192.0.2.1' };
    return {
      paths: { 'sites.cache.explain': { id } },
      bodies: { 'sites.cache.explain': { request, response: { status: 200 }, cacheRules: [{ priority: 10 }] } },
    };
  },
};
