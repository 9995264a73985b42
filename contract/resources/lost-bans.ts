// Bans that a restore of the console has lost, as nodes remember them.
import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Input, Page, PageQuery, Timestamp } from '../scalars/common.ts';
import { Ban } from './bans.ts';

const { id, scope, cidr, reason, source, siteId, siteName, createdAt, expiresAt } = Ban.properties;

export const LostBan = Type.Object({
  id,
  scope,
  cidr,
  reason,
  source,
  siteId,
  siteName: { ...siteName, description: 'Null also when the site no longer exists.' },
  createdAt,
  expiresAt,
  nodes: Type.Integer({ minimum: 1, description: 'Number of nodes that had the ban.' }),
  reportedAt: { ...Timestamp, description: 'When the first node reported it.' },
});
export type LostBan = Static<typeof LostBan>;

export const LostBanStatus = Type.Object({
  listed: Type.Integer({ minimum: 0, description: 'Number of lost bans that are listed.' }),
  unnamed: Type.Integer({
    minimum: 0,
    description: 'Number of further lost bans of one node that are not listed, because a node reports at most 1000.',
  }),
  nodes: Type.Integer({ minimum: 0, description: 'Number of nodes that reported lost bans in the last 8 days.' }),
});
export type LostBanStatus = Static<typeof LostBanStatus>;

const read = { method: 'GET', status: 200, readOnly: true, audit: null } as const;

export const lostBans = resource('bans.lost', {
  list: procedure({
    ...read,
    access: 'operator',
    idempotency: 'accepted',
    path: '/bans/lost',
    summary:
      'Lists bans that a restore of the console has lost, newest first, until they expire or their addresses are banned again.',
    input: Input({ ...PageQuery(50) }),
    output: Page(LostBan),
    errors: [],
  }),
  status: procedure({
    ...read,
    access: 'operator',
    idempotency: 'accepted',
    path: '/bans/lost/status',
    summary: 'Returns how many bans a restore of the console has lost.',
    input: Input({}),
    output: LostBanStatus,
    errors: [],
  }),
});
