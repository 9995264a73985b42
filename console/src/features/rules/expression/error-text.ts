// What is wrong with an expression, in the person's language.
import type { ExpressionError } from '@contract/expression/errors.ts';
import { formatNumber } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';

/** What the language calls something that could stand there; names and signs are the same in every language. */
const PHRASES: Readonly<Record<string, string>> = {
  'a field': 'field',
  'a function': 'function',
  'a string': 'string',
  'an argument': 'argument',
  'a name in double quotes': 'name',
  'the end': 'end',
  'a literal of type string': 'string',
  'a literal of type number': 'number',
  'a literal of type boolean': 'boolean',
  'a literal of type ip': 'ip',
};

/** "Character 12: There is no such field. Accepted: …" */
export function expressionErrorText(
  { code, position, params }: Pick<ExpressionError, 'code' | 'position' | 'params'>,
  accepted: readonly string[] = [],
): string {
  const { t } = i18n.global;
  const text = t(`rules.error.${code}`, params);
  const said = accepted.length === 0 ? text : t('rules.editor.accepted', { text, accepted: acceptedText(accepted) });
  return t('rules.editor.at', { position: formatNumber(position + 1), text: said });
}

function acceptedText(accepted: readonly string[]): string {
  const { t } = i18n.global;
  return accepted
    .map((each) => (PHRASES[each] === undefined ? each : t(`rules.accepted.${PHRASES[each]}`)))
    .join(t('rules.editor.comma'));
}
