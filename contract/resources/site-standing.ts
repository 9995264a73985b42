// How a site stands right now, in a line: what its page says of it on top.
import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, OneOf, Timestamp } from '../scalars/common.ts';
import { ActorType } from './audit-logs.ts';
import { SITE_FIGURES } from './sites.ts';

export const SiteStanding = Type.Object({
  ...SITE_FIGURES,
  underAttack: {
    ...Nullable(OneOf(['site', 'platform'])),
    description: 'platform: on for all sites, whatever the setting of the site; null: off.',
  },
  lastChange: {
    ...Nullable(
      Type.Object({
        at: Timestamp,
        action: Type.String({ description: 'Action as in the audit log.' }),
        actorType: ActorType,
        actorName: Nullable(Type.String()),
      }),
    ),
    description: 'Newest audit entry about the site; null: none is kept.',
  },
});

export const siteStanding = resource('sites', {
  standing: procedure({
    method: 'GET',
    path: '/sites/{id}/standing',
    summary: 'Returns the level, load and Under Attack state of a site, with its last change.',
    input: Input({ id: Id }),
    output: SiteStanding,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: ['SITE_NOT_FOUND'],
  }),
});
