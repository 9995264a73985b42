import { ruleListUsers } from '../../models/rule-set.ts';
import type { ServiceFeature } from '../../runtime/service-feature.ts';

export const feature = {
  ipListUsers: ruleListUsers,
} satisfies ServiceFeature;
