// Words of the language's names in the person's language.
import type { FieldName } from '@contract/expression/fields.ts';
import { i18n } from '@/shared/i18n/i18n.ts';
import type { RowOperator } from './builder.ts';
import type { Option } from './completion.ts';

/** What a field is: "Path". */
export function fieldText(field: FieldName): string {
  return i18n.global.t(`rules.field.${field.replaceAll('.', '_')}`);
}

/** What an operator says in the form of a condition: "contains". */
export function operatorText(operator: RowOperator, not: boolean): string {
  return i18n.global.t(not ? `rules.notOperator.${operator}` : `rules.operator.${operator}`);
}

/** What an option stands for; '' for what says it itself. */
export function optionText(option: Option): string {
  if (option.kind === 'field') return fieldText(option.field);
  if (option.kind === 'function') return i18n.global.t(`rules.function.${option.function}`);
  return option.kind === 'operator' ? i18n.global.t(`rules.operator.${option.operator}`) : '';
}
