import type { Surface } from '../helpers/surfaces.ts';

export const surface: Surface = {
  async calls(api) {
    const clusterId = await api.cluster('kept-ports');
    return {
      paths: { 'clusters.listenPorts.get': { clusterId }, 'clusters.listenPorts.set': { clusterId } },
      bodies: { 'clusters.listenPorts.set': { httpPorts: [8080], httpsPorts: [8443] } },
    };
  },
};
