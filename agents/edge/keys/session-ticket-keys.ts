// Keys of TLS session tickets. Caddy reads their file when it starts (features/handshake).
import { create } from '@bufbuild/protobuf';
import { type SessionTicketKeys, SessionTicketKeysSchema } from '../../../proto/gen/svc/node/v1/certificates_pb.js';
import type { KeyKind } from './key-kind.ts';

const ROLES = ['next', 'current', 'previous'] as const;
const KEY_BYTES = 32;

/** Base64. */
type StoredKeys = Partial<Record<(typeof ROLES)[number], string>>;

export const SESSION_TICKET_KEYS: KeyKind<SessionTicketKeys> = {
  name: 'session ticket keys',
  capability: 'https-v1',
  problemOf(keys) {
    for (const role of ROLES) {
      const { length } = keys[role];
      if (length !== KEY_BYTES && !(role === 'previous' && length === 0)) return `the ${role} key has ${length} bytes`;
    }
    return undefined;
  },
  toStored(keys): StoredKeys {
    const stored: StoredKeys = {};
    for (const role of ROLES) if (keys[role].length > 0) stored[role] = Buffer.from(keys[role]).toString('base64');
    return stored;
  },
  fromStored(version, stored) {
    const keys = create(SessionTicketKeysSchema, { version });
    for (const role of ROLES) keys[role] = new Uint8Array(Buffer.from((stored as StoredKeys)[role] ?? '', 'base64'));
    return keys;
  },
  fetch: (channel, signal) => channel.getSessionTicketKeys({ signal }),
  push: (client, keys) => client.setSessionTicketKeys({ keys }),
  versionOf: (status) => status.sessionTicketKeysVersion,
};
