import type { Api } from '../helpers/resources.ts';
import type { Surface } from '../helpers/surfaces.ts';

const rule = {
  name: 'Made {n}',
  phase: 'waf-custom',
  expression: 'http.host eq "{n}.example.com"',
  enabled: true,
  action: { kind: 'log' },
};

async function ruledSite(api: Api, domain: string): Promise<string> {
  return (await api.site((await api.ok('GET', '/clusters')).items[0].id, domain)).id;
}

export const surface: Surface = {
  async calls(api) {
    const id = await ruledSite(api, 'ruled.example.net');
    return {
      paths: { 'sites.rules.get': { id }, 'sites.rules.set': { id }, 'sites.rules.try': { id } },
      bodies: {
        'rules.validate': { expression: 'http.host eq "{n}.example.com"', phase: 'waf-custom' },
        'sites.rules.set': { rules: [rule] },
        'sites.rules.try': { request: { url: 'https://{n}.example.com/', address: '192.0.2.1' }, rules: [rule] },
        'platformRules.set': { rules: [rule] },
      },
    };
  },
  locks: {
    'sites.rules.set': {
      make: (api, unique) => ruledSite(api, `${unique('ruled')}.example.net`),
      request: (id, unique) => ['PUT', `/sites/${id}/rules`, { rules: [{ ...rule, name: unique('rule') }] }],
    },
    'platformRules.set': {
      make: async () => '',
      request: (_, unique) => ['PUT', '/platform-rules', { rules: [{ ...rule, name: unique('rule') }] }],
    },
  },
};
