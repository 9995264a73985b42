import type { Surface } from '../helpers/surfaces.ts';

export const surface: Surface = {
  async calls(api) {
    const clusterId = await api.cluster('kept-tickets');
    return {
      paths: { 'clusters.sessionTicketKeys.rotate': { clusterId } },
      bodies: { 'clusters.sessionTicketKeys.rotate': {} },
    };
  },
};
