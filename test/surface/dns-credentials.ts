import type { Body } from '../helpers/resources.ts';
import type { Surface } from '../helpers/surfaces.ts';

const SECRET = 'c2VjcmV0IG9mIGEgdGVzdA==';
const access: Body = { name: 'kept', server: 'ns.example.net', keyName: 'key.example.net' };
const made = { ...access, provider: 'rfc2136', zone: 'example.net', secret: SECRET };

export const surface: Surface = {
  async calls(api) {
    const { id } = await api.ok('POST', '/dns-credentials', made);
    // Nobody listens there.
    const { id: closed } = await api.ok('POST', '/dns-credentials', { ...made, name: 'tried', server: '127.0.0.1:1' });
    return {
      paths: {
        'dnsCredentials.get': { id },
        'dnsCredentials.update': { id },
        'dnsCredentials.try': { id: closed },
      },
      fresh: {
        'dnsCredentials.delete': {
          path: '/dns-credentials',
          body: { ...made, name: 'ended {n}' },
          id: ['id'],
          parameter: 'id',
        },
      },
      bodies: {
        'dnsCredentials.create': { ...made, name: 'made {n}' },
        'dnsCredentials.update': { ...access, name: 'renamed {n}' },
        'dnsCredentials.try': {},
      },
    };
  },
  locks: {
    'dnsCredentials.update': {
      make: async (api, unique) => (await api.ok('POST', '/dns-credentials', { ...made, name: unique('dns') })).id,
      request: (id, unique) => ['PUT', `/dns-credentials/${id}`, { ...access, name: unique('changed') }],
    },
  },
};
