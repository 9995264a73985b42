// Backups that the console makes by itself: when, where to, how many are kept, and what became of each.
import Type, { type Static } from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { ExpectedUpdatedAt, Id, Input, Nullable, OneOf, Page, PageQuery, Timestamp } from '../scalars/common.ts';
import { settings } from '../settings.ts';

export const BACKUP_STATES = ['waiting', 'running', 'done', 'failed'] as const;
export type BackupState = (typeof BACKUP_STATES)[number];

/** Why a backup failed. */
export const BACKUP_FAILURES = [
  'folder',
  'disk_full',
  'damaged',
  'database',
  'stopped',
  'interrupted',
  'no_process',
  'failed',
] as const;
export type BackupFailure = (typeof BACKUP_FAILURES)[number];

/** Why backups cannot be written to a folder. */
export const FOLDER_PROBLEMS = ['not_allowed', 'program', 'missing', 'not_writable'] as const;
export type FolderProblem = (typeof FOLDER_PROBLEMS)[number];

const Count = Type.Integer({ minimum: 0 });

export const Backup = Type.Object({
  id: Id,
  cause: OneOf(['schedule', 'request'], { description: 'Whether the schedule or a user began it.' }),
  state: OneOf(BACKUP_STATES),
  phase: Nullable(OneOf(['write', 'verify'], { description: 'While it runs: writing, or reading back.' })),
  progress: Type.Integer({ minimum: 0, maximum: 100, description: 'Percent of the phase, about.' }),
  verified: Type.Boolean({ description: 'Whether the file was read back and is the same as the database.' }),
  problem: Nullable(OneOf(BACKUP_FAILURES, { description: 'Why it failed.' })),
  folder: Type.String({ description: 'Folder of the file.' }),
  fileName: Nullable(Type.String({ description: 'Name of the file; null if there is none.' })),
  deletedAt: { ...Nullable(Timestamp), description: 'When the file was deleted, because newer ones replaced it.' },
  bytes: Nullable({ ...Count, description: 'Size of the file in bytes.' }),
  rows: Nullable({ ...Count, description: 'Rows in it.' }),
  createdAt: Timestamp,
  startedAt: Nullable(Timestamp),
  endedAt: Nullable(Timestamp),
});
export type Backup = Static<typeof Backup>;

export const BackupStatus = Type.Object({
  lastGoodAt: { ...Nullable(Timestamp), description: 'When the last good backup began; null if there is none.' },
  nextAt: { ...Nullable(Timestamp), description: 'When the next one begins; null without a schedule.' },
  lateAt: {
    ...Nullable(Timestamp),
    description: 'When the alert `backup_late` begins, unless there is a new backup before; null without a schedule.',
  },
  folders: Type.Array(Type.String(), {
    description: 'Folders that backups may be written to and below, as SVC_BACKUP_DIRS names them.',
  }),
});
export type BackupStatus = Static<typeof BackupStatus>;

const read = { status: 200, readOnly: true, audit: null, idempotency: 'accepted' } as const;

export const backups = resource('backups', {
  list: procedure({
    ...read,
    access: 'operator',
    method: 'GET',
    path: '/backups',
    summary: 'Lists backups that the console has made or tried to make, newest first.',
    input: Input({ ...PageQuery(50) }),
    output: Page(Backup),
    errors: [],
  }),
  create: procedure({
    access: 'operator',
    idempotency: 'accepted',
    method: 'POST',
    path: '/backups',
    summary: 'Begins a backup to the folder of the schedule now. Works without a schedule, too.',
    input: Input({}),
    output: Backup,
    status: 201,
    readOnly: false,
    audit: 'backup.run',
    errors: ['BACKUP_NOT_SET', 'BACKUP_RUNNING', 'BACKUP_FOLDER_REFUSED'],
  }),
  status: procedure({
    ...read,
    access: 'operator',
    method: 'GET',
    path: '/backups/status',
    summary: 'Returns when the last good backup was made, and when the next one is due.',
    input: Input({}),
    output: BackupStatus,
    errors: [],
  }),
});

const schedule = {
  enabled: Type.Boolean({ default: false, description: 'Whether backups are made by themselves.' }),
  intervalHours: Type.Integer({
    minimum: 1,
    maximum: 168,
    default: 24,
    description: 'Hours from one backup to the next.',
  }),
  keepBy: OneOf(['copies', 'days'], { description: 'Whether `keep` counts backups or days.' }),
  keep: Type.Integer({
    minimum: 1,
    maximum: 365,
    default: 30,
    description: 'Backups that are kept, or days that each is kept. The newest one always stays.',
  }),
  folder: Type.String({
    maxLength: 1024,
    pattern: '^(/[^\\u0000-\\u001f\\u007f]*)?$',
    default: '',
    description: 'Absolute path of the folder that backups are written to.',
  }),
  publicKey: Type.String({
    maxLength: 200,
    pattern: '^[\\x21-\\x7e]*$',
    default: '',
    description: 'Public key that backups are encrypted to, as `npm run backup -- keygen` prints it.',
  }),
  withoutLogs: Type.Boolean({ default: false, description: 'Leaves out security events.' }),
  withoutStatistics: Type.Boolean({ default: false, description: 'Leaves out statistics. Usage stays.' }),
};

export const BackupSettings = Type.Object({ ...schedule, updatedAt: Nullable(Timestamp) });
export type BackupSettings = Static<typeof BackupSettings>;

export const backupSettings = resource(
  'backups.settings',
  settings({
    path: '/backups/settings',
    of: {},
    reads: 'Returns when backups are made, and where to.',
    saves: 'Saves when backups are made, and where to. Omitted fields take their defaults.',
    change: {
      enabled: Type.Optional(schedule.enabled),
      intervalHours: Type.Optional(schedule.intervalHours),
      keepBy: Type.Optional({ ...schedule.keepBy, default: 'copies' }),
      keep: Type.Optional(schedule.keep),
      folder: Type.Optional(schedule.folder),
      publicKey: Type.Optional(schedule.publicKey),
      withoutLogs: Type.Optional(schedule.withoutLogs),
      withoutStatistics: Type.Optional(schedule.withoutStatistics),
      expectedUpdatedAt: ExpectedUpdatedAt,
    },
    output: BackupSettings,
    saved: BackupSettings,
    audit: 'backup.settings_update',
    saveErrors: ['BACKUP_NOT_SET', 'BACKUP_FOLDER_REFUSED', 'BACKUP_KEY_INVALID', 'UPDATED_AT_MISMATCH'],
  }),
);
