import { MAX_ATTENTION, MAX_NAMED } from '../../contract/resources/overview.ts';
import type { ServiceFeature } from '../../mixins/service-feature.ts';
import { MINUTE_MS, SECOND_MS } from '../../mixins/sweep.ts';
import { SESSION_TICKET_KEYS } from '../../models/clusters/session-ticket-key.ts';
import { keeping } from '../../pipeline/key-keeper.ts';

/** Nodes that are online fetch keys within seconds. */
const LATE_MS = 10 * MINUTE_MS;

/** Nodes hear of a rotation from the console's next look at the versions, within seconds: it makes no revision. */
export const feature = {
  jobs: [keeping({ name: 'session-ticket-keys', keys: SESSION_TICKET_KEYS }, 30 * SECOND_MS)],
  attention: {
    kinds: { session_ticket_keys_not_held: { alert: 'node', most: MAX_ATTENTION } },
    async find(sql, clusterId) {
      const asked = { clusterId, sinceMs: LATE_MS, limit: MAX_ATTENTION, named: MAX_NAMED };
      const found = await SESSION_TICKET_KEYS.lagging(sql, asked);
      return found.map(({ at, named, ...item }) => ({
        kind: 'session_ticket_keys_not_held',
        ...item,
        at: at.toISOString(),
        named: named.map((node) => ({ type: 'node', ...node, reason: null })),
      }));
    },
  },
} satisfies ServiceFeature;
