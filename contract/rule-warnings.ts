// What of a rule may not be meant. A warning refuses nothing; words for people are made from its code and parameters.

/** What each code means, in English; a word in braces is a parameter. */
export const RULE_WARNINGS = {
  never_matches: 'The condition matches no request.',
  after_end: 'The rule {rule} ends every request before this one.',
  covered: 'The rule {rule} before this one ends every request that this rule matches.',
  missing_matches:
    'The condition also matches where {field} is missing. To exclude this case, also compare {field} with "".',
  blocks_you: 'The rule blocks your own address, {address}.',
  costly_pattern: 'The pattern {pattern} needs {size} steps for each byte it examines.',
  unknown_country: '"{country}" matches no country. Use an ISO 3166 code of two upper-case letters, such as {use}.',
  pattern_start: 'The pattern {pattern} matches the same without .* at its start, and faster.',
  ja4_held: 'Some nodes lack the JA4 capability. They apply none of these rules until they are upgraded.',
  key_missing: 'Requests without the header {header} share one counter.',
} as const;

export type RuleWarningCode = keyof typeof RULE_WARNINGS;
