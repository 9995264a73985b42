import { MAX_ATTENTION } from '../../contract/resources/overview.ts';
import { rolloutAttention } from '../../models/rollout.ts';
import type { ServiceFeature } from '../../runtime/service-feature.ts';

export const feature = {
  async attention(sql, clusterId) {
    const found = await rolloutAttention(sql, clusterId, MAX_ATTENTION);
    return found.map(({ at, ...one }) => ({ ...one, at: at?.toISOString() ?? null }));
  },
} satisfies ServiceFeature;
