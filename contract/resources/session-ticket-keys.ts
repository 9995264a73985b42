import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Decimal, Id, Input, Timestamp } from '../scalars/common.ts';

export const sessionTicketKeys = resource('clusters.sessionTicketKeys', {
  rotate: procedure({
    method: 'POST',
    path: '/clusters/{clusterId}/session-ticket-keys/rotate',
    summary:
      'Rotates the keys of TLS session tickets, which rotate by themselves once a day. Tickets of the former keys are ' +
      'resumed until the rotation after this one; after three nothing of the present keys is left.',
    input: Input({ clusterId: Id }),
    output: Type.Object({
      version: { ...Decimal, description: 'Of the keys; rises with each rotation.' },
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
