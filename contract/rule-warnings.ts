// What of a rule may not be meant. A warning refuses nothing; words for people are made from its code and parameters.

/** What each code means, in English; a word in braces is a parameter. */
export const RULE_WARNINGS = {
  never_matches: 'The condition holds for no request.',
  after_end: 'The rule {rule} ends every request before this one.',
  covered: 'Every request that this rule is about is ended by the rule {rule} before.',
  missing_matches: 'The condition also holds where {field} is missing; compare it with "" to say what is meant then.',
  blocks_you: 'It blocks your own address, {address}.',
  costly_pattern: 'The pattern {pattern} comes to {size} steps for each byte that it looks at.',
  pattern_start: 'The pattern {pattern} finds the same without .* at its start, and faster.',
  ja4_held: 'Some nodes cannot tell JA4 yet: they hold these rules, all of them, until they can.',
  key_missing: 'Requests without the header {header} are counted together, as one.',
} as const;

export type RuleWarningCode = keyof typeof RULE_WARNINGS;
