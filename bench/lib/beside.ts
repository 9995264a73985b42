// The present edge beside the old one, and the old one beside itself: what two equal edges differ by in the same run is
// what a difference between unequal ones says nothing below.
import { type Interval, medianInterval } from './stats.ts';

/** Figures of the same rounds, in their order: of the old edge, of another process of the old one, of the present one. */
export interface Rounds {
  old: readonly number[];
  oldAgain: readonly number[];
  present: readonly number[];
}

export interface Beside {
  /** Above 1 the present edge is the better one. */
  presentToOld: Interval;
  oldToItself: Interval;
}

/** How much worse than the old edge the present one may be. */
export const AIM_RATIO = 0.98;
const STEADY = 0.02;

/**
 * Compares round by round, because what disturbs a round disturbs all of it. `more` are figures of which more is better,
 * such as requests per second; of `less` less is, such as processor time.
 */
export function beside({ old, oldAgain, present }: Rounds, better: 'more' | 'less'): Beside {
  const ratio = (a: number, b: number) => (better === 'more' ? a / b : b / a);
  return {
    presentToOld: medianInterval(present.map((each, round) => ratio(each, (old[round]! + oldAgain[round]!) / 2))),
    oldToItself: medianInterval(oldAgain.map((each, round) => ratio(each, old[round]!))),
  };
}

/** Both ratios as people read them: [low, median, high]. */
export function besideFigures({ presentToOld, oldToItself }: Beside) {
  return { presentToOld: threeOf(presentToOld), oldToItself: threeOf(oldToItself) };
}

export const threeOf = ({ low, median, high }: Interval) => [low, median, high].map(round3);

/** Three decimals: two would show 0.976 as what is aimed at. */
const round3 = (value: number): number => Math.round(value * 1000) / 1000;

/** Whether two equal edges looked equal: else the run says nothing about a few percent. */
export const isSteady = ({ oldToItself }: Beside): boolean =>
  oldToItself.low >= 1 - STEADY && oldToItself.high <= 1 + STEADY;

/** The aim that the present edge is not worse in what was compared, and the note that a run like this cannot tell. */
export function judge(what: string, compared: Beside): { aims: { aim: string; reached: boolean }[]; notes: string[] } {
  const { low, high } = compared.oldToItself;
  return {
    aims: [
      { aim: `${what}: present ≥ ${AIM_RATIO} × old (median)`, reached: compared.presentToOld.median >= AIM_RATIO },
      { aim: `${what}: the old edge beside itself within ${STEADY * 100} %`, reached: isSteady(compared) },
    ],
    notes: isSteady(compared)
      ? []
      : [
          `${what}: equal edges differed [${round3(low)}, ${round3(high)}] in this run; smaller differences say nothing`,
        ],
  };
}
