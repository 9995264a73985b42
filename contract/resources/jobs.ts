// Long jobs: work of the console that takes minutes and ends in a file.
import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input, Nullable, OneOf, Page, PageQuery, Timestamp } from '../scalars/common.ts';

export const JOB_STATES = ['waiting', 'running', 'done', 'failed', 'cancelled'] as const;

export const Job = Type.Object({
  id: Id,
  kind: Type.String({
    pattern: '^[a-z_]{1,64}$',
    description: 'Kind of work: `usage_export`.',
    examples: ['usage_export'],
  }),
  state: OneOf(JOB_STATES),
  progress: Type.Integer({ minimum: 0, maximum: 100, description: 'Share that is done in percent.' }),
  problem: Nullable(
    OneOf(['failed', 'too_large'], {
      description:
        'Why the job failed. failed: an internal error, three times; too_large: the file is larger than 64 MiB compressed.',
    }),
  ),
  createdBy: Type.Object({ id: Nullable(Type.String()), name: Type.String() }),
  createdAt: Timestamp,
  finishedAt: Nullable(Timestamp),
  fileName: Nullable(Type.String()),
  fileExpiresAt: {
    ...Nullable(Timestamp),
    description: 'When the file is deleted, 24 hours after the job is done. null: there is no file.',
  },
});
export type Job = Static<typeof Job>;

const reads = {
  method: 'GET',
  status: 200,
  readOnly: true,
  audit: null,
  idempotency: 'accepted',
} as const;

export const jobs = resource('jobs', {
  list: procedure({
    ...reads,
    access: 'operator',
    path: '/jobs',
    summary: 'Lists long jobs of all users, newest first.',
    input: Input({ ...PageQuery(50) }),
    output: Page(Job),
    errors: [],
  }),
  get: procedure({
    ...reads,
    access: 'operator',
    path: '/jobs/{id}',
    summary: 'Returns a long job with its progress.',
    input: Input({ id: Id }),
    output: Job,
    errors: ['JOB_NOT_FOUND'],
  }),
  cancel: procedure({
    ...reads,
    access: 'operator',
    method: 'POST',
    readOnly: false,
    path: '/jobs/{id}/cancel',
    summary: 'Cancels a long job that has not ended, and deletes what it has written.',
    input: Input({ id: Id }),
    output: Job,
    errors: ['JOB_NOT_FOUND', 'JOB_FINISHED'],
  }),
  file: procedure({
    ...reads,
    access: 'operator',
    path: '/jobs/{id}/file',
    summary: 'Returns the file of a long job that is done.',
    input: Input({ id: Id }),
    media: 'text/csv',
    output: Type.String({
      examples: ['window_start,window_end,site_id\r\n'],
      description: 'The file. If the transfer breaks off, the file is incomplete.',
    }),
    errors: ['JOB_NOT_FOUND', 'JOB_FILE_UNAVAILABLE'],
  }),
});
