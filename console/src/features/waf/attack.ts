// What kind of attack an event is, and where: the family of rules that adds most to its score. Pure.
import type { Output } from '@contract/procedure.ts';
import type { wafEvents } from '@contract/resources/waf-events.ts';
import { familyOf } from './rules.ts';

type Event = Output<typeof wafEvents.list>['items'][number];
type Match = Event['matches'][number];

export interface Attack {
  family: number;
  part: Match['part'];
  name: string;
  /** Other families whose rules matched, as they come. */
  others: number[];
}

/** Rules of the protocol often match beside the attack itself. */
const PROTOCOL = 920;

/** Of a node that does not count points each match weighs the same. */
const pointsOf = ({ points }: Match) => points ?? 1;

export function attackOf({ rules, matches }: Pick<Event, 'rules' | 'matches'>): Attack {
  const families = [...new Set(rules.map(familyOf))];
  const weightOf = (family: number) =>
    matches
      .filter(({ ruleId }) => familyOf(ruleId) === family)
      .reduce((sum, match) => sum + pointsOf(match), family === PROTOCOL ? -0.5 : 0);
  const [family = 0, ...others] = families.toSorted((a, b) => weightOf(b) - weightOf(a));
  const places = new Map<string, { match: Match; points: number }>();
  for (const match of matches.filter(({ ruleId }) => familyOf(ruleId) === family)) {
    const key = `${match.part} ${match.name}`;
    places.set(key, { match, points: (places.get(key)?.points ?? 0) + pointsOf(match) });
  }
  const [most] = [...places.values()].toSorted((a, b) => b.points - a.points);
  return { family, part: most?.match.part ?? 'all', name: most?.match.name ?? '', others };
}
