// How long, and how much of, request logs is kept.
import Type, { type Static } from 'typebox';
import { resource } from '../procedure.ts';
import { settings } from '../settings.ts';

export const LogSettings = Type.Object({
  retentionDays: Type.Integer({
    minimum: 1,
    maximum: 30,
    description: 'Days that rows of request logs are kept. Default 7.',
  }),
  maxGigabytes: Type.Integer({
    minimum: 1,
    maximum: 10_000,
    description:
      'Disk space of all rows in GiB. Beyond it the oldest days are deleted, then the oldest hours of today. Default 20.',
  }),
});
export type LogSettings = Static<typeof LogSettings>;

export const DEFAULT_LOG_SETTINGS: LogSettings = { retentionDays: 7, maxGigabytes: 20 };

export const logSettings = resource(
  'settings.logs',
  settings({
    path: '/settings/logs',
    of: {},
    reads: 'Returns how long, and how much of, request logs is kept.',
    saves: 'Changes how long, and how much of, request logs is kept; omitted fields keep their values.',
    change: Type.Partial(LogSettings).properties,
    output: LogSettings,
    saved: LogSettings,
    audit: 'system.logs_update',
  }),
);
