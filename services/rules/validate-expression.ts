import { checkCacheCondition, checkCondition, checkValue } from '../../contract/expression/expression.ts';
import type { Input, Output } from '../../contract/procedure.ts';
import type { rules } from '../../contract/resources/rules.ts';
import { ipListNames } from '../../models/rules/ip-list.ts';
import type { Runtime } from '../../runtime/runtime.ts';

/** Checks an expression as saving a rule with it would; the IP lists it names have to be there. */
export async function validateExpression(
  { pools }: Runtime,
  { expression, kind, phase = 'waf-custom' }: Input<typeof rules.validate>,
): Promise<Output<typeof rules.validate>> {
  const lists = new Set(expression.includes('$') ? await ipListNames(pools.api) : []);
  const result =
    kind === 'cacheRule'
      ? checkCacheCondition(expression, lists)
      : (kind === 'value' ? checkValue : checkCondition)(expression, { phase, lists });
  return result.valid ? { valid: true, position: 0, message: '' } : { valid: false, ...result.error };
}
