// Kind "cc-template": thresholds of the sites that follow the template. A cluster has it while one of its sites does.
import { create, toBinary } from '@bufbuild/protobuf';
import { CcTemplateSchema } from '../../proto/gen/svc/config/v1/protection_pb.js';
import { readCcTemplate } from '../protection-setting.ts';
import { hasFollowers } from '../site-protection.ts';
import type { EntryKind } from './kind.ts';
import { thresholdsOf } from './protection.ts';

export const CC_TEMPLATE_KIND = 'cc-template';

export const ccTemplateKind: EntryKind = {
  kind: CC_TEMPLATE_KIND,
  compilerVersion: 1,
  bypass: false,
  onRollback: 'restore',
  scope: 'cluster',
  async compile(sql, clusterId, ids) {
    if (!ids.includes('') || !(await hasFollowers(sql, clusterId))) return new Map();
    const message = create(CcTemplateSchema, { thresholds: thresholdsOf(await readCcTemplate(sql)) });
    return new Map([['', { body: toBinary(CcTemplateSchema, message), features: ['challenge-v1'], refs: [] }]]);
  },
  async *list() {
    yield [''];
  },
};
