// Values offered together under a name (specification: Protection settings of a site, CC policy, WAF settings of a site).
// Clients show what matches none as custom.
import type { CcThresholds } from './scalars/cc-thresholds.ts';

export const PRESETS = ['loose', 'standard', 'strict'] as const;
export type Preset = (typeof PRESETS)[number];

export interface ChallengeStrength {
  passTtlSeconds: number;
  powDifficulty: number;
  powHighDifficulty: number;
}

export const CHALLENGE_PRESETS: Readonly<Record<Preset, ChallengeStrength>> = {
  loose: { passTtlSeconds: 3600, powDifficulty: 14, powHighDifficulty: 18 },
  standard: { passTtlSeconds: 1800, powDifficulty: 16, powHighDifficulty: 20 },
  strict: { passTtlSeconds: 900, powDifficulty: 18, powHighDifficulty: 22 },
};

const EVERY_CC_PRESET = { highPowInsteadOfCaptcha: false, windowSeconds: 10 };

export const CC_PRESETS: Readonly<Record<Preset, CcThresholds>> = {
  loose: {
    ...EVERY_CC_PRESET,
    maxLevel: 'pow',
    siteQps: 3000,
    urlQps: 600,
    ipQps: 150,
    ipBanSeconds: 300,
    originErrorPercent: 70,
    originErrorMinRequests: 200,
    escalateAfterSeconds: 20,
    cooldownSeconds: 60,
  },
  standard: {
    ...EVERY_CC_PRESET,
    maxLevel: 'captcha',
    siteQps: 1000,
    urlQps: 200,
    ipQps: 50,
    ipBanSeconds: 600,
    originErrorPercent: 50,
    originErrorMinRequests: 100,
    escalateAfterSeconds: 10,
    cooldownSeconds: 60,
  },
  strict: {
    ...EVERY_CC_PRESET,
    maxLevel: 'captcha',
    siteQps: 300,
    urlQps: 60,
    ipQps: 20,
    ipBanSeconds: 3600,
    originErrorPercent: 30,
    originErrorMinRequests: 50,
    escalateAfterSeconds: 5,
    cooldownSeconds: 300,
  },
};

export interface WafStrength {
  paranoiaLevel: number;
  anomalyThreshold: number;
  requestBodyLimit: number;
}

export const WAF_PRESETS: Readonly<Record<Preset, WafStrength>> = {
  loose: { paranoiaLevel: 1, anomalyThreshold: 10, requestBodyLimit: 65_536 },
  standard: { paranoiaLevel: 1, anomalyThreshold: 5, requestBodyLimit: 131_072 },
  strict: { paranoiaLevel: 2, anomalyThreshold: 5, requestBodyLimit: 1_048_576 },
};

/** The preset whose values these are; null = custom. Fields that no preset has are not looked at. */
export function presetOf<T extends object>(presets: Readonly<Record<Preset, T>>, values: T): Preset | null {
  const matches = (preset: T) => (Object.keys(preset) as (keyof T)[]).every((key) => preset[key] === values[key]);
  return PRESETS.find((name) => matches(presets[name])) ?? null;
}
