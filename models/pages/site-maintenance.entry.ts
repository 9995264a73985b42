// Kind "site-maintenance": a site in maintenance. Without an entry it is not.
import { create, toBinary } from '@bufbuild/protobuf';
import { DEFAULT_MAINTENANCE, type Maintenance } from '../../contract/resources/maintenance.ts';
import { SiteMaintenanceSchema } from '../../proto/gen/svc/config/v1/pages_pb.js';
import type { CompiledEntry } from '../config/entry-kind.ts';
import { compileEach, siteSettingsKind } from '../config/site-settings-kind.ts';
import { capabilitiesOfTemplates, shownTemplate } from './template.ts';

export const SITE_MAINTENANCE_KIND = 'site-maintenance';

const SAVED = { table: 'site_maintenance', defaults: DEFAULT_MAINTENANCE };

// A switch of the operator: all nodes follow at once, and no rollback begins or ends a maintenance.
export const siteMaintenanceKind = siteSettingsKind<Maintenance>(SITE_MAINTENANCE_KIND, SAVED, {
  compilerVersion: 1,
  bypass: true,
  maxBodyBytes: 128 * 1024,
  keptOnRollback: Object.keys(DEFAULT_MAINTENANCE),
  compileSettings: (settings) => compileMaintenance(settings as Maintenance),
  shown: (settings) => ({ ...settings, template: shownTemplate((settings as Maintenance).template) }),
  compile: compileEach(SAVED, compileMaintenance),
});

/** The entry of a site's settings; null for a site that is not in maintenance. */
export function compileMaintenance(settings: Maintenance): CompiledEntry | null {
  const { enabled, ...fields } = settings;
  if (!enabled) return null;
  return {
    body: toBinary(SiteMaintenanceSchema, create(SiteMaintenanceSchema, fields)),
    features: capabilitiesOfTemplates([fields.template]),
    refs: [],
    settings,
  };
}
