import { SESSION_TICKET_KEYS } from '../../models/session-ticket-key.ts';
import { keeping } from '../../runtime/key-keeper.ts';
import type { ServiceFeature } from '../../runtime/service-feature.ts';
import { SECOND_MS } from '../../runtime/sweep.ts';

/** Nodes hear of a rotation from the console's next look at the versions, within seconds: it makes no revision. */
export const feature = {
  jobs: [keeping({ name: 'session-ticket-keys', keys: SESSION_TICKET_KEYS }, 30 * SECOND_MS)],
} satisfies ServiceFeature;
