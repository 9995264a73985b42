// Keys that sign passes.
import { ClusterKeys } from './cluster-keys.ts';

/** Longer than any pass is valid, so that a key has signed nothing valid when it is forgotten. */
const ROTATION_MS = (24 * 60 + 10) * 60_000;

export const CHALLENGE_KEYS = new ClusterKeys({
  name: 'challenge_key',
  rotationMs: ROTATION_MS,
  lacks: 's.challenge_keys_version not in (0, :version::bigint)',
});
