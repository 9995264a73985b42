// Thresholds of CC mitigation: what a policy has of its own, and what the template gives to sites that follow it.
import Type, { type Static } from 'typebox';
import { ChallengeType } from './challenge.ts';

const qps = (what: string) =>
  Type.Integer({ minimum: 0, maximum: 1_000_000, description: `${what}, on one node; 0: off.` });

/** Properties of the thresholds, each with its limits. */
export const ccThresholds = {
  maxLevel: { ...ChallengeType, description: 'Highest level to which load can raise the site.' },
  highPowInsteadOfCaptcha: Type.Boolean({
    description: 'Whether the captcha level uses the high-difficulty proof of work instead.',
  }),
  windowSeconds: Type.Integer({ minimum: 5, maximum: 60, description: 'Length of the window for rates, in seconds.' }),
  siteQps: qps('Requests per second of the whole site'),
  urlQps: qps('Requests per second of one path'),
  ipQps: qps('Requests per second of one client (IPv4 address or IPv6 /64), above which the client is banned'),
  ipBanSeconds: Type.Integer({ minimum: 60, maximum: 86_400, description: 'Length of this ban in seconds.' }),
  originErrorPercent: Type.Integer({
    minimum: 0,
    maximum: 100,
    description: '5xx responses and failed connections of the origin, in percent; 0: off.',
  }),
  originErrorMinRequests: Type.Integer({
    minimum: 0,
    maximum: 1_000_000,
    description: 'Origin requests in the window below which errors do not count.',
  }),
  escalateAfterSeconds: Type.Integer({
    minimum: 1,
    maximum: 3600,
    description: 'How long a threshold must be exceeded before the level rises, in seconds.',
  }),
  cooldownSeconds: Type.Integer({
    minimum: 1,
    maximum: 86_400,
    description: 'How long all figures must stay below 80 % of the thresholds before the level falls, in seconds.',
  }),
};

export const CcThresholds = Type.Object(ccThresholds);
export type CcThresholds = Static<typeof CcThresholds>;
