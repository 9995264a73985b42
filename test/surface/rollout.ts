import type { Surface } from '../helpers/surfaces.ts';

export const surface: Surface = {
  async calls(api) {
    const id = await api.cluster('kept-canary');
    const [event] = await api
      .sql('rollout_event')
      .insert({
        id: 'kept',
        cluster_id: id,
        at: new Date(),
        kind: 'direct',
        actor: { type: 'system', id: null, name: '' },
      })
      .returning('id');
    return {
      paths: {
        'clusters.rollout': { id },
        'clusters.rolloutPolicy': { id },
        'clusters.setRolloutPolicy': { id },
        'clusters.rolloutEvents': { id },
        'clusters.rolloutEvent': { id, eventId: event.id },
        'clusters.promoteRollout': { id },
        'clusters.abortRollout': { id },
      },
      bodies: {
        'clusters.setRolloutPolicy': { windowSeconds: 600, minRequests: 50 },
        'clusters.promoteRollout': {},
        'clusters.abortRollout': {},
      },
    };
  },
  locks: {
    'clusters.setRolloutPolicy': {
      make: (api, unique) => api.cluster(unique('canary')),
      request: (id) => ['PUT', `/clusters/${id}/rollout-policy`, { windowSeconds: 120 }],
    },
  },
};
