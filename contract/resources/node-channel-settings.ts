import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Input, Timestamp } from '../scalars/common.ts';
import { settings } from '../settings.ts';

export const NodeChannelSettings = Type.Object({
  url: Type.String({ description: 'Saved URL; empty: none.' }),
  effectiveUrl: Type.String({
    description: "URL that new nodes receive: the saved one, else the environment's, else the default.",
  }),
  source: Type.Union([Type.Literal('setting'), Type.Literal('environment'), Type.Literal('default')]),
});

export const NodeChannelCheck = Type.Object({
  url: Type.String(),
  result: Type.Union(
    [Type.Literal('ok'), Type.Literal('unreachable'), Type.Literal('mismatch'), Type.Literal('refused')],
    {
      description:
        'unreachable: no handshake within 3 s. mismatch: another service responded, or the URL is not https. ' +
        'refused: the saved URL has a special-purpose address, so no connection was made.',
    },
  ),
  checkedAt: Timestamp,
});

export const nodeChannelSettings = resource('settings.nodeChannel', {
  ...settings({
    path: '/settings/node-channel',
    of: {},
    reads: 'Returns the URL that nodes connect to.',
    saves: 'Saves the URL that nodes connect to; an empty string clears it. Enrolled nodes keep theirs.',
    change: {
      url: Type.String({
        maxLength: 512,
        description: 'https://host[:port] without anything else, or empty. Example: https://nodes.example.com:8444.',
      }),
    },
    output: NodeChannelSettings,
    saved: NodeChannelSettings,
    audit: 'system.node_channel_update',
  }),
  check: procedure({
    method: 'GET',
    path: '/settings/node-channel-check',
    summary: 'Checks whether the node channel responds at its URL, at most 30 s ago. Informational only.',
    input: Input({}),
    output: NodeChannelCheck,
    slow: true,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
});
