import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { SECOND_MS } from '../../mixins/sweep.ts';
import { readProtectionSettings } from '../../models/security/protection-setting.ts';
import { countSitesUnderAttack } from '../../models/security/site-protection.ts';
import { keeping } from '../../pipeline/key-keeper.ts';
import { CHALLENGES } from './challenge-keys.ts';
import { protectionRestorer } from './restore-protection.ts';

export const feature = {
  restores: [protectionRestorer],
  jobs: [keeping(CHALLENGES, 30 * SECOND_MS)],
  async attention(sql, clusterId) {
    const [{ underAttack }, count] = await Promise.all([
      readProtectionSettings(sql),
      countSitesUnderAttack(sql, clusterId),
    ]);
    return [
      ...(underAttack ? [{ kind: 'under_attack_on' } as const] : []),
      ...(count > 0 ? [{ kind: 'sites_under_attack', count } as const] : []),
    ];
  },
} satisfies ServiceFeature;
