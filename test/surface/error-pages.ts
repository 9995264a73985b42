import type { Api } from '../helpers/resources.ts';
import type { Surface } from '../helpers/surfaces.ts';

const paged = async (api: Api, domain: string): Promise<string> => {
  const { id } = await api.site((await api.ok('GET', '/clusters')).items[0].id, domain);
  await api.ok('PUT', `/sites/${id}/error-pages`, { pages: [{ status: 404, template: 'Gone' }] });
  await api.ok('PUT', `/sites/${id}/maintenance`, { enabled: false, retryAfterSeconds: 60 });
  return id;
};

export const surface: Surface = {
  async calls(api) {
    const id = await paged(api, 'pages.example.net');
    const names = [
      'sites.errorPages.get',
      'sites.errorPages.update',
      'sites.maintenance.get',
      'sites.maintenance.update',
    ];
    return {
      paths: Object.fromEntries(names.map((name) => [name, { id }])),
      bodies: {
        'sites.errorPages.update': { pages: [{ status: '5xx', template: 'Sorry {n}' }], interceptOriginErrors: true },
        'sites.maintenance.update': { enabled: true, allowedPathPrefixes: ['/{n}'] },
        'settings.errorPages.set': { unknownHost: 'Who {n}?' },
      },
    };
  },
  locks: {
    'sites.errorPages.update': {
      make: (api, unique) => paged(api, `${unique('pages')}.example.net`),
      request: (id) => ['PUT', `/sites/${id}/error-pages`, { pages: [] }],
    },
    'sites.maintenance.update': {
      make: (api, unique) => paged(api, `${unique('maintenance')}.example.net`),
      request: (id) => ['PUT', `/sites/${id}/maintenance`, { enabled: true }],
    },
  },
};
