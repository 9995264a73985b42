import type { Api, Body } from '../helpers/resources.ts';
import { testCertificate } from '../helpers/site-certificates.ts';
import type { Surface } from '../helpers/surfaces.ts';

async function input(domain: string): Promise<Body> {
  const { chainPem, privateKeyPem } = await testCertificate([domain]);
  return { chainPem, privateKeyPem };
}

async function site(api: Api, domain: string): Promise<string> {
  return (await api.site((await api.ok('GET', '/clusters')).items[0].id, domain)).id;
}

let pems: Body = {};

export const surface: Surface = {
  async calls(api) {
    const domain = 'certified.example.net';
    const id = await site(api, domain);
    const given = await input(domain);
    const kept = await api.ok('POST', '/certificates/upload', { name: 'Kept', ...given });
    const settings = { certificateId: kept.id, hstsMaxAge: 60 };
    await api.ok('PUT', `/sites/${id}/https`, { settings });
    const ofCertificate = { id: kept.id };
    return {
      paths: {
        'certificates.get': ofCertificate,
        'certificates.nodes': ofCertificate,
        'certificates.replace': ofCertificate,
        'sites.https.get': { id },
        'sites.https.set': { id },
      },
      fresh: {
        'certificates.delete': {
          path: '/certificates/upload',
          body: { name: 'Ended {n}', ...given },
          id: ['id'],
          parameter: 'id',
        },
      },
      bodies: {
        'certificates.upload': { name: 'Made {n}', ...given },
        'certificates.replace': given,
        'sites.https.set': { settings },
      },
    };
  },
  locks: {
    'certificates.replace': {
      make: async (api, unique) => {
        pems = await input('locked.example.net');
        return (await api.ok('POST', '/certificates/upload', { name: unique('lock'), ...pems })).id;
      },
      request: (id) => ['PUT', `/certificates/${id}`, pems],
    },
    'settings.acmeDirectory.set': {
      make: async () => '',
      request: () => ['PUT', '/settings/acme-directory', { url: null }],
    },
    'sites.https.set': {
      make: (api, unique) => site(api, `${unique('https')}.example.net`),
      request: (id, unique) => [
        'PUT',
        `/sites/${id}/https`,
        { settings: { compressMaxLength: Number(unique('n').replace(/[^0-9]/g, '')) + 1 } },
      ],
    },
  },
};
