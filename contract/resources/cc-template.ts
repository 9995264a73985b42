import Type from 'typebox';
import { CC_PRESETS } from '../presets.ts';
import { procedure, resource } from '../procedure.ts';
import { CcThresholds } from '../scalars/cc-thresholds.ts';
import { Input } from '../scalars/common.ts';

/** The template until it is changed. */
export const DEFAULT_CC_TEMPLATE = CC_PRESETS.standard;

export const ccTemplate = resource('settings.ccTemplate', {
  get: procedure({
    method: 'GET',
    path: '/settings/cc-template',
    summary: 'Answers the thresholds of sites that follow the template.',
    input: Input({}),
    output: CcThresholds,
    status: 200,
    access: 'operator',
    readOnly: true,
    audit: null,
    idempotency: 'accepted',
    errors: [],
  }),
  set: procedure({
    method: 'PUT',
    path: '/settings/cc-template',
    summary: 'Changes the template, and with it every site that follows it; omitted fields keep their values.',
    input: Input(Type.Partial(CcThresholds).properties),
    output: CcThresholds,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: 'system.cc_template_update',
    idempotency: 'accepted',
    errors: [],
  }),
});
