import type { Surface } from '../helpers/surfaces.ts';

export const surface: Surface = {
  async calls(api) {
    const id: string = (await api.site((await api.ok('GET', '/clusters')).items[0].id, 'excluded.example.net')).id;
    const exclusion = { ruleId: 942_100, path: '/editor', part: 'argument', name: 'text' };
    return {
      paths: { 'sites.waf.exclusions.hits': { id }, 'sites.waf.exclusions.preview': { id } },
      bodies: { 'sites.waf.exclusions.preview': { exclusions: [exclusion] } },
    };
  },
};
