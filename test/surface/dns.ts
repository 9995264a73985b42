import type { Body } from '../helpers/resources.ts';
import type { Surface } from '../helpers/surfaces.ts';

const credentials = {
  server: '127.0.0.1:1',
  tsig_key_name: 'key.example.net',
  tsig_secret: 'c2VjcmV0IG9mIGEgdGVzdA==',
};
const access: Body = { name: 'dns', provider: 'rfc2136', zone: 'example.net', credentials };

export const surface: Surface = {
  async calls(api) {
    const { id } = await api.ok('POST', '/dns/providers', access);
    const { id: cluster } = await api.ok('POST', '/clusters', { name: 'dns-surface' });
    const manual = { mode: 'manual', domain: 'cdn.example.net' };
    const { revision } = await api.ok('PUT', `/clusters/${cluster}/dns`, manual);
    const path = { id: cluster };
    return {
      paths: {
        'dns.providers.update': { id },
        'dns.binding.get': path,
        'dns.binding.set': path,
        'dns.binding.preview': path,
        'dns.binding.export': path,
        'dns.binding.revisions': path,
        'dns.binding.rollback': { ...path, revision },
        'dns.binding.force': path,
      },
      fresh: {
        'dns.providers.delete': {
          path: '/dns/providers',
          body: { ...access, name: 'ended {n}' },
          id: ['id'],
          parameter: 'id',
        },
      },
      bodies: {
        'dns.providers.create': { ...access, name: 'made {n}' },
        'dns.providers.update': { name: 'renamed {n}' },
        'dns.binding.set': { ...manual, ttl: 60 },
        'dns.binding.preview': manual,
        'dns.binding.rollback': {},
        'dns.binding.force': { revision },
        'dns.protection.set': {},
        'dns.reconcile': {},
      },
    };
  },
  locks: {
    'dns.providers.update': {
      make: async (api, unique) => (await api.ok('POST', '/dns/providers', { ...access, name: unique('dns') })).id,
      request: (id, unique) => ['PUT', `/dns/providers/${id}`, { name: unique('changed') }],
    },
    'dns.protection.set': {
      make: async (api) => {
        await api.ok('PUT', '/dns/protection', {});
        return '/dns/protection';
      },
      request: (path) => ['PUT', path, { massRemovalRatio: 0.4 }],
    },
    'dns.binding.set': {
      make: async (api, unique) => {
        const { id } = await api.ok('POST', '/clusters', { name: unique('dns') });
        await api.ok('PUT', `/clusters/${id}/dns`, { mode: 'manual', domain: 'cdn.example.net' });
        return `/clusters/${id}/dns`;
      },
      request: (path) => ['PUT', path, { mode: 'manual', domain: 'cdn.example.net', ttl: 120 }],
      updatedAt: (answer) => answer.binding.updatedAt,
    },
  },
};
