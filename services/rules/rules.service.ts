import type { ServiceSchema } from 'moleculer';
import { rules } from '../../contract/resources/rules.ts';
import { contractService, implement } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { validateExpression } from './validate-expression.ts';

export const roles: Role[] = ['app'];

export default (runtime: Runtime): ServiceSchema => ({
  name: 'rules',
  mixins: [contractService([implement(rules.validate, (input) => validateExpression(runtime, input))])],
});
