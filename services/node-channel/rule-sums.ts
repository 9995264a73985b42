// Sums of what became of requests under rules, over the batches that a process takes in a second.
import type { SummedRule } from '../../models/rules/rule-minute.ts';
import type { StatsRow } from './stats-report.ts';

export class RuleSums {
  readonly #sums = new Map<string, SummedRule>();

  add(
    clusterId: string,
    { siteId, ruleMinute: minute, rules }: Pick<StatsRow, 'siteId' | 'ruleMinute' | 'rules'>,
  ): void {
    for (const { ruleId, platform, event, count } of rules) {
      const key = `${clusterId} ${siteId} ${minute} ${ruleId} ${platform} ${event}`;
      const sum = this.#sums.get(key);
      if (sum) sum.requests += count;
      else this.#sums.set(key, { clusterId, siteId, minute, ruleId, platform, event, requests: count });
    }
  }

  /** All sums, at most so many at a time. */
  *pieces(most: number): Generator<SummedRule[]> {
    const rows = [...this.#sums.values()];
    for (let at = 0; at < rows.length; at += most) yield rows.slice(at, at + most);
  }
}
