import type { Api } from '../helpers/resources.ts';
import type { Surface } from '../helpers/surfaces.ts';

const redirectedSite = async (api: Api, name: string): Promise<string> =>
  (await api.site(await api.cluster(name), `${name}.example.net`)).id;

export const surface: Surface = {
  async calls(api) {
    const id = await redirectedSite(api, 'kept-redirects');
    const redirects = [{ source: '/old', target: '/new' }];
    await api.ok('PUT', `/sites/${id}/bulk-redirects`, { redirects });
    return {
      paths: { 'sites.bulkRedirects.get': { id }, 'sites.bulkRedirects.set': { id } },
      bodies: { 'sites.bulkRedirects.set': { redirects: [...redirects, { source: '/old-{n}', target: '/new' }] } },
    };
  },
  locks: {
    'sites.bulkRedirects.set': {
      make: (api, unique) => redirectedSite(api, unique('redirects')),
      request: (id, unique) => [
        'PUT',
        `/sites/${id}/bulk-redirects`,
        { redirects: [{ source: `/${unique('old')}`, target: '/new' }] },
      ],
    },
  },
};
