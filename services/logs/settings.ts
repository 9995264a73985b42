// Which requests of a site are logged, read and replaced.
import { fail } from '../../contract/errors.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import { DEFAULT_LOGS, type LogsOfSite, SECRET_HEADERS, type siteLogs } from '../../contract/resources/site-logs.ts';
import { getSiteSetting, replaceSiteSetting, type SettingOfSites } from '../../mixins/site-setting.ts';
import { compileLogs, SITE_LOGS_KIND } from '../../models/sites/site-logs.entry.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';

const SETTING: SettingOfSites<LogsOfSite> = {
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
  return getSiteSetting(runtime, SETTING, id);
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
  return replaceSiteSetting(runtime, call, SETTING, { id, settings: { ...given, logHeaders }, expectedUpdatedAt });
}
