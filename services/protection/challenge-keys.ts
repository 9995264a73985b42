// Keys that sign passes: each rotation is a revision of its own, which tells nodes at once.
import { CHALLENGE_KEYS } from '../../models/clusters/challenge-key.ts';
import { CHALLENGE_KEYS_KIND } from '../../models/clusters/challenge-keys.entry.ts';
import { publish } from '../../models/config/publish.ts';
import type { KeptKeys } from '../../pipeline/key-keeper.ts';

export const CHALLENGES: KeptKeys = {
  name: 'challenge-keys',
  keys: CHALLENGE_KEYS,
  async rotated(tx, clusterId) {
    const entries = [{ kind: CHALLENGE_KEYS_KIND, id: '' }];
    await publish(tx, { clusterId, entries, reason: 'challenge_keys_rotated' });
  },
};
