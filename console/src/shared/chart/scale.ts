// The vertical axis of a chart: from 0 to the next round number above the largest value, with few marks.
export interface Scale {
  range: readonly [number, number];
  ticks: number[];
}

const MARKS = 4;
const STEPS = [1, 2, 2.5, 5, 10];

/** `least`: the smallest distance of two marks; 1 where there are no halves. */
export function scaleOf(values: readonly number[], least = 0): Scale {
  const largest = Math.max(0, ...values);
  if (largest === 0) return { range: [0, 1], ticks: [0, 1] };
  const power = 10 ** Math.floor(Math.log10(largest / MARKS));
  const round = power * STEPS.find((one) => one * power * MARKS >= largest)!;
  const step = least === 0 ? round : Math.ceil(round / least) * least;
  const count = Math.ceil(largest / step);
  const ticks = Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12)));
  return { range: [0, ticks.at(-1)!], ticks };
}
