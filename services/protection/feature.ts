import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { SECOND_MS } from '../../mixins/sweep.ts';
import { readProtectionSettings } from '../../models/security/protection-setting.ts';
import { sitesUnderAttack } from '../../models/security/site-protection.ts';
import { keeping } from '../../pipeline/key-keeper.ts';
import { CHALLENGES } from './challenge-keys.ts';
import { protectionRestorer } from './restore-protection.ts';

export const feature = {
  restores: [protectionRestorer],
  jobs: [keeping(CHALLENGES, 30 * SECOND_MS)],
  attention: {
    kinds: { under_attack_on: { alert: 'installation' }, sites_under_attack: { alert: 'site' } },
    async find(sql, clusterId) {
      const [{ underAttack }, { count, subjects }] = await Promise.all([
        readProtectionSettings(sql),
        sitesUnderAttack(sql, clusterId),
      ]);
      return [
        ...(underAttack ? [{ kind: 'under_attack_on' } as const] : []),
        ...(count > 0 ? [{ kind: 'sites_under_attack', count, subjects } as const] : []),
      ];
    },
  },
} satisfies ServiceFeature;
