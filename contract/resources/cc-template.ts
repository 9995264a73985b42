import Type from 'typebox';
import { CC_PRESETS } from '../presets.ts';
import { procedure, resource } from '../procedure.ts';
import { CcThresholds } from '../scalars/cc-thresholds.ts';
import { Input } from '../scalars/common.ts';
import { settings } from '../settings.ts';
import { Rehearsal } from './protection.ts';

/** The template until it is changed. */
export const DEFAULT_CC_TEMPLATE = CC_PRESETS.standard;

const change = Type.Partial(CcThresholds).properties;

export const ccTemplate = resource('settings.ccTemplate', {
  ...settings({
    path: '/settings/cc-template',
    of: {},
    reads: 'Returns the CC mitigation thresholds of sites that follow the template.',
    saves: 'Changes the CC mitigation template and every site that follows it; omitted fields keep their values.',
    change,
    output: CcThresholds,
    saved: CcThresholds,
    audit: 'system.cc_template_update',
  }),
  rehearse: procedure({
    method: 'POST',
    path: '/settings/cc-template/rehearse',
    summary:
      'Previews the effect that the change would have had in the last hour on sites that follow the ' +
      'template; changes nothing.',
    input: Input(change),
    output: Rehearsal,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
});
