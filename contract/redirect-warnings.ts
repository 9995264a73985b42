// Mistakes that bulk redirects can have. A warning never rejects a redirect.

/** The meaning of each code, in English; a word in braces is a parameter. */
export const REDIRECT_WARNINGS = {
  loops: 'The redirect leads back to its own source: {through}.',
  fragment: 'Clients do not send # or the text after it. The source matches only requests for {source}.',
} as const;

export type RedirectWarningCode = keyof typeof REDIRECT_WARNINGS;
