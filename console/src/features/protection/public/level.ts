// Levels and challenges in words and colours.
import type { Output } from '@contract/procedure.ts';
import type { security } from '@contract/resources/security.ts';
import { type ChallengeType, LEVELS, type Level } from '@contract/scalars/challenge.ts';
import { i18n } from '@/shared/i18n/i18n.ts';
import type { Tone } from '@/shared/state/tone.ts';

export type Incidents = Output<typeof security.incidents>;
export type SecurityState = Output<typeof security.state>;
export type SecurityEvent = Output<typeof security.events>['items'][number];

export const CHALLENGES = LEVELS.slice(1) as readonly ChallengeType[];

export function levelText(level: Level): string {
  return i18n.global.t(`protection.level.${level}`);
}

export function levelTone(level: Level): Tone {
  if (level === 'normal') return 'green';
  return level === 'captcha' ? 'red' : 'amber';
}

/** Challenges of a choice, weakest first. */
export function challengeOptions(): { value: ChallengeType; label: string }[] {
  return CHALLENGES.map((value) => ({ value, label: levelText(value) }));
}
