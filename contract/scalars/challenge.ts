// Challenge types in the order of their levels (specification: Challenge levels and types).
import Type, { type Static } from 'typebox';

const types = [Type.Literal('cookie302'), Type.Literal('js'), Type.Literal('pow'), Type.Literal('captcha')] as const;

export const ChallengeType = Type.Union([...types], {
  description:
    'cookie302: redirect that sets a cookie; js: JavaScript computation; pow: proof of work; captcha: ' +
    'characters in an image.',
});
export type ChallengeType = Static<typeof ChallengeType>;

/** A pass of a level satisfies every requirement up to it. */
export const Level = Type.Union([Type.Literal('normal'), ...types], {
  description: 'Challenge level in ascending order: normal, cookie302, js, pow, captcha.',
});
export type Level = Static<typeof Level>;

/** Levels by their number; `normal` asks for no challenge. */
export const LEVELS: readonly Level[] = ['normal', 'cookie302', 'js', 'pow', 'captcha'];
