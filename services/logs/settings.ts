// Which requests of a site are logged, read and replaced.
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import {
  DEFAULT_LOGS,
  type LogsOfSite,
  MAX_SAMPLE_DAYS,
  SECRET_HEADERS,
  type siteLogs,
} from '../../contract/resources/site-logs.ts';
import { getSiteSetting, replaceSiteSetting, type SettingOfSites } from '../../mixins/site-setting.ts';
import { DAY_MS } from '../../models/db/partitions.ts';
import { compileLogs, SITE_LOGS_KIND } from '../../models/sites/site-logs.entry.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';

export const SITE_LOGS: SettingOfSites<LogsOfSite> = {
  table: 'site_logs',
  defaults: DEFAULT_LOGS,
  kind: SITE_LOGS_KIND,
  compile: compileLogs,
  reason: 'site_logs_updated',
  audit: 'site.logs_configure',
  told: (before, after) => ({ before, after }),
};

export function getLogSettings(
  runtime: Runtime,
  { id }: Input<typeof siteLogs.get>,
): Promise<Output<typeof siteLogs.get>> {
  return getSiteSetting(runtime, SITE_LOGS, id);
}

/** Throws the contract's errors. */
export function setLogSettings(
  runtime: Runtime,
  input: Input<typeof siteLogs.set>,
  call: Call,
): Promise<Output<typeof siteLogs.set>> {
  const { id, expectedUpdatedAt, ...fields } = input;
  const given = { ...DEFAULT_LOGS, ...fields };
  const logHeaders = [...new Set(given.logHeaders.map((name) => name.toLowerCase()))];
  const name = logHeaders.find((each) => SECRET_HEADERS.some((secret) => secret === each));
  if (name !== undefined) fail('LOG_HEADER_FORBIDDEN', { name });
  const settings = { ...given, logHeaders, sampleUntil: endOf(given) };
  return replaceSiteSetting(runtime, call, SITE_LOGS, { id, settings, expectedUpdatedAt });
}

/** Throws LOG_UNTIL_INVALID. */
function endOf({ sampleRate, sampleUntil }: LogsOfSite): string | null {
  if (sampleRate === 0 || sampleUntil === null) return null;
  const [now, until] = [Date.now(), Date.parse(sampleUntil)];
  const latest = now + MAX_SAMPLE_DAYS * DAY_MS;
  if (!(until > now && until <= latest)) fail('LOG_UNTIL_INVALID', { latest: new Date(latest).toISOString() });
  return new Date(until).toISOString();
}
