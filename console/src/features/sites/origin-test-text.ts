// What a test of an origin found, in words: a line for each step, up to the first that failed.
import type { OriginTest } from '@contract/resources/origin-test.ts';
import { formatDuration, hasMessage } from '@/shared/i18n/format.ts';
import { i18n } from '@/shared/i18n/i18n.ts';
import type { Tone } from '@/shared/state/tone.ts';

export interface TestLine {
  tone: Tone;
  text: string;
}

/** `port`: the one that was tested. */
export function testLines({ steps, address, range, status }: OriginTest, port: number): TestLine[] {
  const { t } = i18n.global;
  const words = { address, range, status, port: String(port) };
  return steps.map(({ step, milliseconds, failure }): TestLine => {
    if (failure !== null) return { tone: 'red', text: t(failureKey(step, failure), words) };
    const tone = step === 'response' && (status ?? 0) >= 400 ? 'amber' : 'green';
    const duration = formatDuration(Math.max(1, milliseconds));
    return { tone, text: t('sites.originTest.done', { step: t(`sites.originTest.step.${step}`, words), duration }) };
  });
}

function failureKey(step: string, failure: string): string {
  const keys = [`sites.originTest.failure.${step}.${failure}`, `sites.originTest.failure.${failure}`];
  return keys.find(hasMessage) ?? 'sites.originTest.failure.other';
}
