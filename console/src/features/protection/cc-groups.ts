// Fields of CC thresholds, for a site's policy and for the template alike.

import { CC_PRESETS, PRESETS, type Preset } from '@contract/presets.ts';
import type { CcThresholds } from '@contract/scalars/cc-thresholds.ts';
import type { ComposerTranslation } from 'vue-i18n';
import type { Field, FieldGroup } from '@/shared/forms/field.ts';
import { formatDuration, formatNumber } from '@/shared/i18n/format.ts';
import { CHALLENGES, levelText } from './public/level.ts';

type Name = keyof CcThresholds;

/** Groups of the thresholds below a prefix such as `cc.`; the first one has the slot `group:thresholds`. */
export function ccGroups<Prefix extends '' | 'cc.', Path extends string = never>(
  t: ComposerTranslation,
  prefix: Prefix,
  shown: NonNullable<FieldGroup<Path>['shown']>,
): FieldGroup<`${Prefix}${Name}` | Path>[] {
  const field = (name: Name, more: Omit<Field, 'path'>) => ({ path: `${prefix}${name}` as const, ...more });
  const rate = t('protection.unit.perSecond');
  return [
    {
      key: 'thresholds',
      title: t('protection.cc.levels'),
      shown,
      fields: [
        field('maxLevel', {
          label: t('protection.cc.maxLevel'),
          help: t('protection.cc.maxLevelHelp'),
          choices: Object.fromEntries(CHALLENGES.map((level) => [level, levelText(level)])),
        }),
        field('highPowInsteadOfCaptcha', {
          label: t('protection.cc.highPow'),
          help: t('protection.cc.highPowHelp'),
        }),
        field('escalateAfterSeconds', {
          label: t('protection.cc.escalate'),
          help: t('protection.cc.escalateHelp'),
          measure: 'seconds',
        }),
        field('cooldownSeconds', {
          label: t('protection.cc.cooldown'),
          help: t('protection.cc.cooldownHelp'),
          measure: 'seconds',
        }),
      ],
    },
    {
      title: t('protection.cc.rates'),
      help: t('protection.cc.ratesHelp'),
      shown,
      fields: [
        field('windowSeconds', {
          label: t('protection.cc.window'),
          help: t('protection.cc.windowHelp'),
          measure: 'seconds',
        }),
        field('siteQps', { label: t('protection.cc.siteQps'), help: t('protection.cc.siteQpsHelp'), unit: rate }),
        field('urlQps', { label: t('protection.cc.urlQps'), help: t('protection.cc.urlQpsHelp'), unit: rate }),
        field('ipQps', { label: t('protection.cc.ipQps'), help: t('protection.cc.ipQpsHelp'), unit: rate }),
        field('ipBanSeconds', { label: t('protection.cc.ipBan'), measure: 'seconds' }),
      ],
    },
    {
      title: t('protection.cc.origin'),
      help: t('protection.cc.originHelp'),
      shown,
      fields: [
        field('originErrorPercent', {
          label: t('protection.cc.originErrors'),
          help: t('protection.cc.zeroOff'),
          unit: '%',
        }),
        field('originErrorMinRequests', {
          label: t('protection.cc.originMin'),
          help: t('protection.cc.originMinHelp'),
        }),
      ],
    },
  ];
}

/** Thresholds as names and values, for where they are read only. */
export function ccFacts(t: ComposerTranslation, values: CcThresholds): { name: string; value: string }[] {
  const rate = (value: number) =>
    value === 0 ? t('protection.cc.off') : t('protection.cc.perSecond', { count: formatNumber(value) });
  const time = (seconds: number) => formatDuration(seconds * 1000);
  const top = values.maxLevel === 'captcha' && values.highPowInsteadOfCaptcha;
  return [
    {
      name: t('protection.cc.maxLevel'),
      value: top ? t('protection.cc.highPowShort') : levelText(values.maxLevel),
    },
    { name: t('protection.cc.siteQps'), value: rate(values.siteQps) },
    { name: t('protection.cc.urlQps'), value: rate(values.urlQps) },
    { name: t('protection.cc.ipQps'), value: rate(values.ipQps) },
    { name: t('protection.cc.ipBan'), value: time(values.ipBanSeconds) },
    {
      name: t('protection.cc.originErrors'),
      value:
        values.originErrorPercent === 0
          ? t('protection.cc.off')
          : t('protection.cc.originFact', {
              percent: formatNumber(values.originErrorPercent),
              count: formatNumber(values.originErrorMinRequests),
            }),
    },
    { name: t('protection.cc.window'), value: time(values.windowSeconds) },
    { name: t('protection.cc.escalate'), value: time(values.escalateAfterSeconds) },
    { name: t('protection.cc.cooldown'), value: time(values.cooldownSeconds) },
  ];
}

/** What each preset means. */
export function ccPresetTexts(t: ComposerTranslation): Record<Preset, string> {
  const text = (preset: Preset) => {
    const { maxLevel, siteQps, urlQps, ipQps, ipBanSeconds } = CC_PRESETS[preset];
    return t('protection.cc.presetText', {
      level: levelText(maxLevel),
      site: formatNumber(siteQps),
      url: formatNumber(urlQps),
      ip: formatNumber(ipQps),
      ban: formatDuration(ipBanSeconds * 1000),
    });
  };
  return Object.fromEntries(PRESETS.map((preset) => [preset, text(preset)])) as Record<Preset, string>;
}
