import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Decimal, Id, Input, Timestamp } from '../scalars/common.ts';

export const sessionTicketKeys = resource('clusters.sessionTicketKeys', {
  rotate: procedure({
    method: 'POST',
    path: '/clusters/{clusterId}/session-ticket-keys/rotate',
    summary:
      'Rotates the TLS session ticket keys, which also rotate daily. Tickets of the previous keys are ' +
      'accepted until the next rotation; after three rotations, all present keys are replaced.',
    input: Input({ clusterId: Id }),
    output: Type.Object({
      version: { ...Decimal, description: 'Version of the keys; rises with each rotation.' },
      rotatedAt: Timestamp,
    }),
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'cluster.session_ticket_keys_rotate',
    idempotency: 'accepted',
    errors: ['CLUSTER_NOT_FOUND', 'SESSION_TICKET_KEYS_NOT_HELD'],
  }),
});
