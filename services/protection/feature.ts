import { readProtectionSettings } from '../../models/protection-setting.ts';
import { countSitesUnderAttack } from '../../models/site-protection.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { ServiceFeature } from '../../runtime/service-feature.ts';
import { SECOND_MS } from '../../runtime/sweep.ts';
import { ChallengeKeyKeeper } from './challenge-keys.ts';
import { protectionRestorer } from './restore-protection.ts';

const keepers = new WeakMap<Runtime, ChallengeKeyKeeper>();

export const feature = {
  restores: [protectionRestorer],
  jobs: [{ name: 'challenge-keys', everyMs: 30 * SECOND_MS, run: keepChallengeKeys }],
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

async function keepChallengeKeys(runtime: Runtime, signal: AbortSignal): Promise<void> {
  const keeper = keepers.get(runtime) ?? new ChallengeKeyKeeper();
  keepers.set(runtime, keeper);
  await keeper.run(runtime, signal);
}
