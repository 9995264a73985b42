import type { Api } from '../helpers/resources.ts';
import type { Surface } from '../helpers/surfaces.ts';

const inspected = async (api: Api, domain: string): Promise<string> => {
  const { id } = await api.site((await api.ok('GET', '/clusters')).items[0].id, domain);
  await api.ok('PATCH', `/sites/${id}/waf`, { mode: 'detect' });
  return id;
};

export const surface: Surface = {
  async calls(api) {
    const id = await inspected(api, 'inspected.example.net');
    const exclusion = { ruleId: 942_100, path: '/{n}', part: 'argument', name: 'text' };
    return {
      paths: { 'sites.waf.get': { id }, 'sites.waf.update': { id }, 'sites.waf.topRules': { id } },
      bodies: { 'sites.waf.update': { mode: 'block', paranoiaLevel: 2, exclusions: [exclusion] } },
    };
  },
  locks: {
    'sites.waf.update': {
      make: (api, unique) => inspected(api, `${unique('waf')}.example.net`),
      request: (id) => ['PATCH', `/sites/${id}/waf`, { anomalyThreshold: 7 }],
    },
  },
};
