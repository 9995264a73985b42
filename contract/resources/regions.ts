import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Empty, ExpectedUpdatedAt, Id, Input, Page, PageQuery, SearchQuery, Timestamp } from '../scalars/common.ts';

const RegionName = Type.String({ minLength: 1, maxLength: 64, pattern: '^\\S(.*\\S)?$' });
const RegionCode = Type.String({
  pattern: '^[a-z0-9][a-z0-9-]{0,31}$',
  description: 'Unique code. Example: eu-central.',
});

export const Region = Type.Object({
  id: Id,
  name: Type.String(),
  code: RegionCode,
  nodeGroupCount: Type.Integer({ minimum: 0 }),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});

export const regions = resource('regions', {
  list: procedure({
    method: 'GET',
    path: '/regions',
    summary: 'Lists regions by code.',
    input: Input({ ...SearchQuery('Part of the name or the code, case-insensitive.'), ...PageQuery(50) }),
    output: Page(Region),
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
  create: procedure({
    method: 'POST',
    path: '/regions',
    summary: 'Creates a region.',
    input: Input({ name: RegionName, code: RegionCode }),
    output: Region,
    status: 201,
    access: 'operator',
    readOnly: false,
    audit: 'region.create',
    idempotency: 'accepted',
    errors: ['REGION_CODE_TAKEN'],
  }),
  update: procedure({
    method: 'PATCH',
    path: '/regions/{id}',
    summary: 'Changes the name or the code of a region.',
    input: Input({
      id: Id,
      name: Type.Optional(RegionName),
      code: Type.Optional(RegionCode),
      expectedUpdatedAt: ExpectedUpdatedAt,
    }),
    output: Region,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'region.update',
    idempotency: 'accepted',
    errors: ['REGION_NOT_FOUND', 'REGION_CODE_TAKEN', 'UPDATED_AT_MISMATCH'],
  }),
  delete: procedure({
    method: 'DELETE',
    path: '/regions/{id}',
    summary: 'Deletes a region; its node groups stay without a region.',
    input: Input({ id: Id }),
    output: Empty,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'region.delete',
    idempotency: 'accepted',
    errors: ['REGION_NOT_FOUND'],
  }),
});
