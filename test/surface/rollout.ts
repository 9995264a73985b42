import type { Api } from '../helpers/resources.ts';
import type { Surface } from '../helpers/surfaces.ts';

/** A cluster whose canary runs until somebody ends it; its id. */
async function trying(api: Api, name: string): Promise<string> {
  const id = await api.cluster(name);
  const node = await api.node(id, name, { features: ['canary-v1'] });
  const tomorrow = new Date(Date.now() + 86_400_000);
  await api.sql('node_state').where({ node_id: node }).update({ last_seen_at: tomorrow });
  await api.sql('node_group').where({ cluster_id: id }).update({ is_canary: true });
  const policy = { enabled: true, autoPromote: false, windowSeconds: 3600 };
  await api.ok('PUT', `/clusters/${id}/rollout-policy`, policy);
  await api.site(id, `${name}.example.net`);
  return id;
}

export const surface: Surface = {
  async calls(api) {
    const id = await api.cluster('kept-canary');
    const actor = { type: 'system', id: null, name: '' };
    await api.sql('rollout_event').insert({ id: 'kept', cluster_id: id, at: new Date(), kind: 'direct', actor });
    return {
      paths: {
        'clusters.rollout': { id },
        'clusters.rolloutPolicy': { id },
        'clusters.setRolloutPolicy': { id },
        'clusters.rolloutEvents': { id },
        'clusters.rolloutEvent': { id, eventId: 'kept' },
        'clusters.promoteRollout': { id: await trying(api, 'promotes') },
        'clusters.abortRollout': { id: await trying(api, 'aborts') },
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
