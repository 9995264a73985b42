import Type from 'typebox';
import { resource } from '../procedure.ts';
import { Decimal, Id, Nullable } from '../scalars/common.ts';
import { settings } from '../settings.ts';
import { LackingNode } from './client-ip.ts';

export const DEFAULT_FIELD_BYTES = 8192;

const fields = {
  fieldBytes: Type.Integer({
    minimum: DEFAULT_FIELD_BYTES,
    maximum: 65_536,
    default: DEFAULT_FIELD_BYTES,
    description:
      'Largest header field of a request, with its name, in bytes. All fields together may have 24 KiB more. ' +
      'Larger requests get 431. Raise it for sign-in systems with large tokens, such as Kerberos.',
  }),
};
const state = {
  ...fields,
  unsupportedNodes: Type.Array(LackingNode, {
    description: 'Active nodes without the capability header-limit-v1, at most 100.',
  }),
};

export const headerLimit = resource(
  'clusters.headerLimit',
  settings({
    path: '/clusters/{clusterId}/header-limit',
    of: { clusterId: Id },
    reads: 'Returns the largest header field that nodes accept.',
    saves: 'Sets the largest header field that nodes accept.',
    change: { fieldBytes: Type.Optional(fields.fieldBytes) },
    output: Type.Object(state),
    saved: Type.Object({ ...state, revision: Nullable(Decimal) }),
    audit: 'cluster.header_limit_update',
    errors: ['CLUSTER_NOT_FOUND'],
  }),
);
