import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Input, Nullable, Timestamp } from '../scalars/common.ts';

export const Settings = Type.Object({
  version: Type.String(),
  consoleUrl: Type.String({ description: 'Public URL of the console.' }),
  nodeApiUrl: Type.String({ description: 'URL of the node channel in effect.' }),
  nodeCaSha256: Nullable(Type.String({ description: 'SHA-256 of the internal CA certificate in hexadecimal.' })),
  analyticsMode: Type.Union([Type.Literal('lite'), Type.Literal('clickhouse')]),
  setupCompletedAt: Nullable(Timestamp),
});

export const settings = resource('settings', {
  get: procedure({
    method: 'GET',
    path: '/settings',
    summary: 'Returns the version and URLs of the console.',
    input: Input({}),
    output: Settings,
    status: 200,
    access: { scope: 'system:read' },
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
});
