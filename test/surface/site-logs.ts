import type { Surface } from '../helpers/surfaces.ts';

export const surface: Surface = {
  async calls(api) {
    const id: string = (await api.site((await api.ok('GET', '/clusters')).items[0].id, 'logged.example.net')).id;
    const names = ['settings.get', 'settings.set'].map((name) => `sites.logs.${name}`);
    const reads = ['query', 'histogram', 'top', 'export', 'startExport'].map((name) => `logs.${name}`);
    const range = { from: new Date(Date.now() - 3_600_000).toISOString(), to: new Date().toISOString() };
    return {
      paths: Object.fromEntries([...names, ...reads].map((name) => [name, { id }])),
      bodies: {
        'sites.logs.settings.set': { sampleRate: 100 },
        'settings.logs.set': { retentionDays: 7 },
        'logs.startExport': range,
      },
    };
  },
  locks: {
    'sites.logs.settings.set': {
      make: async (api, unique) => {
        const cluster = (await api.ok('GET', '/clusters')).items[0].id;
        const { id } = await api.site(cluster, `${unique('logged')}.example.net`);
        await api.ok('PUT', `/sites/${id}/logs/settings`, { sampleRate: 2 });
        return id;
      },
      request: (id) => ['PUT', `/sites/${id}/logs/settings`, { sampleRate: 1 }],
    },
  },
};
