import type { AttentionEntries } from '../attention-entry.ts';
import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  SESSION_TICKET_KEYS_NOT_HELD: entry(
    409,
    'Some online nodes lack the key that the rotation would activate; see `data.nodes`. They fetch it ' +
      'automatically. Retry later.',
  ),
} satisfies ErrorEntries;

export const attention = {
  session_ticket_keys_not_held: { order: 75, level: 'watch', page: '/nodes' },
} satisfies AttentionEntries;
