import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Input, Timestamp } from '../scalars/common.ts';
import { settings } from '../settings.ts';

export const NodeChannelSettings = Type.Object({
  url: Type.String({ description: 'Saved address; empty when none is saved.' }),
  effectiveUrl: Type.String({ description: 'What new nodes are given: saved, else environment, else default.' }),
  source: Type.Union([Type.Literal('setting'), Type.Literal('environment'), Type.Literal('default')]),
});

export const NodeChannelCheck = Type.Object({
  url: Type.String(),
  result: Type.Union(
    [Type.Literal('ok'), Type.Literal('unreachable'), Type.Literal('mismatch'), Type.Literal('refused')],
    {
      description:
        'unreachable: no handshake within 3 s; mismatch: something else answered or the address is not https; ' +
        'refused: the saved address is a special-purpose one, no connection was made.',
    },
  ),
  checkedAt: Timestamp,
});

export const nodeChannelSettings = resource('settings.nodeChannel', {
  ...settings({
    path: '/settings/node-channel',
    of: {},
    reads: 'Answers the address nodes connect to.',
    saves: 'Saves the address nodes connect to; an empty string clears it. Enrolled nodes keep theirs.',
    change: {
      url: Type.String({ maxLength: 512, description: 'https://host[:port] without anything else, or empty.' }),
    },
    output: NodeChannelSettings,
    saved: NodeChannelSettings,
    audit: 'system.node_channel_update',
  }),
  check: procedure({
    method: 'GET',
    path: '/settings/node-channel-check',
    summary: 'Tells whether the node channel answers at its address, as of at most 30 s ago. Advisory.',
    input: Input({}),
    output: NodeChannelCheck,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
});
