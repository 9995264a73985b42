import { type ErrorEntries, entry } from '../error-entry.ts';

export const errors = {
  SESSION_TICKET_KEYS_NOT_HELD: entry(
    409,
    'Online nodes do not have the key that a rotation would bring into use; see data.nodes. They fetch it by themselves.',
  ),
} satisfies ErrorEntries;
