// Kind "cc-template": thresholds of the sites that follow the template. A cluster has it while one of its sites does.
import { create, toBinary } from '@bufbuild/protobuf';
import { CcTemplateSchema } from '../../proto/gen/svc/config/v1/protection_pb.js';
import type { EntryKind } from '../config/entry-kind.ts';
import { PROTECTION_KIND, thresholdsOf } from './protection.entry.ts';
import { readCcTemplate } from './protection-setting.ts';
import { hasFollowers } from './site-protection.ts';

export const CC_TEMPLATE_KIND = 'cc-template';

export const ccTemplateKind: EntryKind = {
  kind: CC_TEMPLATE_KIND,
  compilerVersion: 1,
  bypass: false,
  onRollback: 'restore',
  dependsOn: [PROTECTION_KIND],
  scope: 'cluster',
  ownerOf: () => null,
  async compile(sql, clusterId, ids) {
    if (!ids.includes('') || !(await hasFollowers(sql, clusterId))) return new Map();
    const settings = await readCcTemplate(sql);
    const body = toBinary(CcTemplateSchema, create(CcTemplateSchema, { thresholds: thresholdsOf(settings) }));
    return new Map([['', { body, features: ['challenge-v1'], refs: [], settings }]]);
  },
  async *list() {
    yield [''];
  },
};
