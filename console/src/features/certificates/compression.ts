// What people mean by compression, as the settings that it takes. `standard` are those of a new site.
import type { CompressionSettings } from '@contract/resources/site-https.ts';

export const COMPRESSION_PRESETS = ['off', 'standard', 'all'] as const;
export type CompressionPreset = (typeof COMPRESSION_PRESETS)[number];

const CODINGS: Readonly<Record<CompressionPreset, Pick<CompressionSettings, 'gzip' | 'brotli' | 'zstd'>>> = {
  off: { gzip: false, brotli: false, zstd: false },
  standard: { gzip: true, brotli: false, zstd: false },
  all: { gzip: true, brotli: true, zstd: true },
};

/** All settings of the preset. */
export function presetSettings(preset: CompressionPreset, standard: CompressionSettings): CompressionSettings {
  return { ...standard, ...CODINGS[preset] };
}

/** The preset that the settings are, by what counts: the details of a coding that is off do not. Null: none. */
export function presetOf(
  get: (name: keyof CompressionSettings) => unknown,
  standard: CompressionSettings,
): CompressionPreset | null {
  const same = ([name, value]: [keyof CompressionSettings, unknown]) =>
    JSON.stringify(get(name)) === JSON.stringify(value);
  return COMPRESSION_PRESETS.find((preset) => counting(presetSettings(preset, standard)).every(same)) ?? null;
}

function counting(settings: CompressionSettings): [keyof CompressionSettings, unknown][] {
  const off = (['gzip', 'brotli', 'zstd'] as const).filter((coding) => !settings[coding]);
  const entries = Object.entries(settings) as [keyof CompressionSettings, unknown][];
  if (off.length === 3) return entries.filter(([name]) => off.some((coding) => coding === name));
  return entries.filter(([name]) => !off.some((coding) => name !== coding && name.startsWith(coding)));
}
