import type { Surface } from '../helpers/surfaces.ts';

export const surface: Surface = {
  async calls(api) {
    const clusterId = (await api.ok('GET', '/clusters')).items[0].id;
    const site = await api.site(clusterId, 'purged.example.net');
    const { id } = await api.ok('POST', '/cache-tasks', { type: 'site', siteIds: [site.id] });
    return {
      paths: { 'cacheTasks.get': { id }, 'sites.purgeAll': { id: site.id } },
      bodies: { 'cacheTasks.create': { type: 'url', urls: ['https://purged.example.net/{n}'] }, 'sites.purgeAll': {} },
    };
  },
};
