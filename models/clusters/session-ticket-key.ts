// Keys of TLS session tickets: a ticket that one node of a cluster gave is resumed by every other.
import type { Capability } from '../../contract/capabilities.ts';
import { ClusterKeys } from './cluster-keys.ts';

const ROTATION_MS = 24 * 3_600_000;
/** A node that takes no keys resumes fewer sessions; others would encrypt with an old key for it. */
const WAITS_MS = 3_600_000;
const SPEAKS: Capability = 'https-v1';

export const SESSION_TICKET_KEYS = new ClusterKeys({
  name: 'session_ticket_key',
  rotationMs: ROTATION_MS,
  waitsMs: WAITS_MS,
  lacks: `'${SPEAKS}' = any(s.features) and s.session_ticket_keys_version <> :version::bigint`,
});
