import test from 'ava';
import { countryOptions, countryText } from '../../../../../../console/src/shared/controls/countries.ts';
import { COUNTRY_CODES } from '../../../../../../contract/country-codes.ts';

test('every country has a code of its own and a name in both languages', (t) => {
  t.is(new Set(COUNTRY_CODES).size, 250);
  for (const language of ['en', 'zh-CN'])
    for (const code of COUNTRY_CODES)
      t.regex(countryText(code, language), new RegExp(`^.{2,} \\(${code}\\)$`, 'u'), code);
});

test('countries are offered by name, and a code that is none stays chosen', (t) => {
  const labels = countryOptions(['DE', 'Russia'], 'en').map(({ label }) => label);
  t.is(labels[0], 'Russia');
  t.deepEqual(labels.slice(1, 3), ['Afghanistan (AF)', 'Åland Islands (AX)']);
  t.true(labels.includes('Germany (DE)'));
  t.true(countryOptions([], 'zh-CN').some(({ label }) => label === '德国 (DE)'));
});
