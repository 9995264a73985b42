// Countries by their code, with names in the language of the Web UI.
import { COUNTRY_CODES } from '../../../../contract/country-codes.ts';

/** "Germany (DE)"; a code that is none, as it is. */
export function countryText(code: string, language: string): string {
  const name = COUNTRY_CODES.includes(code) ? new Intl.DisplayNames(language, { type: 'region' }).of(code) : undefined;
  return name === undefined || name === code ? code : `${name} (${code})`;
}

/** All of them in the order of their names; `chosen` that are none of them stand first. */
export function countryOptions(chosen: readonly string[], language: string): { value: string; label: string }[] {
  const strange = chosen.filter((code) => code !== '' && !COUNTRY_CODES.includes(code));
  const known = COUNTRY_CODES.map((value) => ({ value, label: countryText(value, language) }));
  known.sort((a, b) => a.label.localeCompare(b.label, language));
  return [...strange.map((value) => ({ value, label: value })), ...known];
}
