import test from 'ava';
import {
  COMPRESSION_PRESETS,
  presetOf,
  presetSettings as settingsOf,
} from '../../../../../../console/src/features/certificates/compression.ts';
import { type CompressionSettings, DEFAULT_COMPRESSION } from '../../../../../../contract/resources/site-https.ts';

const named = (settings: CompressionSettings) => presetOf((name) => settings[name], DEFAULT_COMPRESSION);
const presetSettings = (preset: (typeof COMPRESSION_PRESETS)[number]) => settingsOf(preset, DEFAULT_COMPRESSION);

for (const preset of COMPRESSION_PRESETS) {
  test(`what ${preset} sets is recognised as it`, (t) => {
    t.is(named(presetSettings(preset)), preset);
  });
}

test('a new site has the standard', (t) => {
  t.is(named(DEFAULT_COMPRESSION), 'standard');
});

test('details of a coding count while it is on', (t) => {
  t.is(named({ ...presetSettings('standard'), brotliLevel: 11 }), 'standard');
  t.is(named({ ...presetSettings('off'), gzipTypes: [], compressMaxLength: 1000 }), 'off');
  t.is(named({ ...presetSettings('all'), brotliLevel: 11 }), null);
  t.is(named({ ...presetSettings('standard'), gzip: false, zstd: true }), null);
});
