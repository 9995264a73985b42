// Kind "site-logs": which requests of a site are logged. Without an entry only those that a rule samples are.
import { isDeepStrictEqual } from 'node:util';
import { create, toBinary } from '@bufbuild/protobuf';
import { DEFAULT_LOGS, type LogsOfSite } from '../../contract/resources/site-logs.ts';
import { SiteLogsSchema } from '../../proto/gen/svc/config/v1/logs_pb.js';
import type { CompiledEntry } from '../config/entry-kind.ts';
import { compileEach, siteSettingsKind } from '../config/site-settings-kind.ts';

export const SITE_LOGS_KIND = 'site-logs';

const SAVED = { table: 'site_logs', defaults: DEFAULT_LOGS };

// Visitors notice nothing of it, and an operator who looks for something now waits for no canary.
export const siteLogsKind = siteSettingsKind<LogsOfSite>(SITE_LOGS_KIND, SAVED, {
  compilerVersion: 1,
  bypass: true,
  maxBodyBytes: 4096,
  compile: compileEach(SAVED, compileLogs),
});

/** The entry of a site's settings; null for those that do what the defaults do. */
export function compileLogs(settings: LogsOfSite): CompiledEntry | null {
  if (isDeepStrictEqual(settings, DEFAULT_LOGS)) return null;
  // Nodes know no end: the console ends it.
  const { logHeaders: headers, sampleUntil: _, ...fields } = settings;
  return {
    body: toBinary(SiteLogsSchema, create(SiteLogsSchema, { ...fields, headers })),
    features: ['access-logs-v1'],
    refs: [],
    settings,
  };
}
