// The secret of the cluster under which keys of PURGE requests are hashed. Without the console PURGE requests cannot be served,
// so Caddy waits for the agent and reads no file.
import { create } from '@bufbuild/protobuf';
import { type PurgeSecret, PurgeSecretSchema } from '../../../proto/gen/svc/node/v1/purges_pb.js';
import type { KeyKind } from '../keys/key-kind.ts';

const MIN_BYTES = 16;
const MAX_BYTES = 256;

export const PURGE_SECRET: KeyKind<PurgeSecret> = {
  name: 'purge secret',
  capability: 'purge-method-v1',
  problemOf: ({ secret: { length } }) =>
    length < MIN_BYTES || length > MAX_BYTES ? `the secret has ${length} bytes` : undefined,
  toStored: ({ secret }) => Buffer.from(secret).toString('base64'),
  fromStored: (version, stored) =>
    create(PurgeSecretSchema, { version, secret: new Uint8Array(Buffer.from(stored as string, 'base64')) }),
  fetch: (channel, signal) => channel.getPurgeSecret({ signal }),
  push: (client, secret) => client.setPurgeSecret({ secret }),
  versionOf: (status) => status.purgeSecretVersion,
};
