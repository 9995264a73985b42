// Maintenance of a site, read and replaced.
import type { Input, Output } from '../../contract/procedure.ts';
import { DEFAULT_MAINTENANCE, type Maintenance, type maintenance } from '../../contract/resources/maintenance.ts';
import { getSiteSetting, replaceSiteSetting, type SettingOfSites } from '../../mixins/site-setting.ts';
import { compileMaintenance, SITE_MAINTENANCE_KIND } from '../../models/pages/site-maintenance.entry.ts';
import { shownTemplate } from '../../models/pages/template.ts';
import type { Call } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { givenMaintenance } from './given-pages.ts';

const told = (settings: Maintenance) => ({ ...settings, template: shownTemplate(settings.template) });

const SETTING: SettingOfSites<Maintenance> = {
  table: 'site_maintenance',
  defaults: DEFAULT_MAINTENANCE,
  kind: SITE_MAINTENANCE_KIND,
  compile: compileMaintenance,
  reason: 'site_maintenance_updated',
  audit: 'site.maintenance_update',
  told: (before, after) => ({ before: told(before), after: told(after) }),
};

export function getMaintenance(
  runtime: Runtime,
  { id }: Input<typeof maintenance.get>,
): Promise<Output<typeof maintenance.get>> {
  return getSiteSetting(runtime, SETTING, id);
}

/** Throws the contract's errors. */
export function updateMaintenance(
  runtime: Runtime,
  input: Input<typeof maintenance.update>,
  call: Call,
): Promise<Output<typeof maintenance.update>> {
  const { id, expectedUpdatedAt } = input;
  return replaceSiteSetting(runtime, call, SETTING, { id, settings: givenMaintenance(input), expectedUpdatedAt });
}
