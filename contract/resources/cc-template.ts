import Type from 'typebox';
import { CC_PRESETS } from '../presets.ts';
import { resource } from '../procedure.ts';
import { CcThresholds } from '../scalars/cc-thresholds.ts';
import { settings } from '../settings.ts';

/** The template until it is changed. */
export const DEFAULT_CC_TEMPLATE = CC_PRESETS.standard;

export const ccTemplate = resource(
  'settings.ccTemplate',
  settings({
    path: '/settings/cc-template',
    of: {},
    reads: 'Answers the thresholds of sites that follow the template.',
    saves: 'Changes the template, and with it every site that follows it; omitted fields keep their values.',
    change: Type.Partial(CcThresholds).properties,
    output: CcThresholds,
    saved: CcThresholds,
    audit: 'system.cc_template_update',
  }),
);
