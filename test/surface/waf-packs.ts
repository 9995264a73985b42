import type { Surface } from '../helpers/surfaces.ts';

export const surface: Surface = {
  async calls(api) {
    const id: string = (await api.site((await api.ok('GET', '/clusters')).items[0].id, 'packed.example.net')).id;
    return { paths: { 'sites.waf.packs.list': { id } } };
  },
};
