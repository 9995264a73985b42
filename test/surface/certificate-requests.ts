import type { Surface } from '../helpers/surfaces.ts';

export const surface: Surface = {
  async calls(api) {
    // No site serves the name, so no authority is asked.
    const asked = { names: ['asked.example.net'], email: 'kept@example.net', name: 'asked' };
    const { id } = await api.ok('POST', '/certificates/request', asked);
    const site = await api.site((await api.ok('GET', '/clusters')).items[0].id, 'checked.example.net');
    return {
      paths: { 'sites.https.check': { id: site.id }, 'certificates.renew': { id }, 'certificates.progress': { id } },
      bodies: {
        'certificates.request': { ...asked, names: ['asked-{n}.example.net'] },
        'certificates.rehearse': { names: ['rehearsed-{n}.example.net'], email: 'kept@example.net' },
        'certificates.renew': {},
        'settings.acmeDirectory.set': { url: null },
      },
    };
  },
};
