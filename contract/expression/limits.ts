// Bounds of the expression language. Nodes hold their own to the decoded tree; what passes here passes there.

/** Longest source of a rule's condition or value, in UTF-16 code units as JavaScript counts them. */
export const MAX_EXPRESSION = 4096;
/** Longest source of a cache condition, and of what may be asked about. */
export const MAX_CACHE_CONDITION = 16_384;
export const MAX_TOKENS = 512;
/** Parentheses and `not` inside each other. */
export const MAX_NESTING = 16;
/** Conditions, functions and their arguments in one source; a function that is an argument counts once. */
export const MAX_SOURCE_NODES = 128;
/** Nodes of the tree that a node of the fleet accepts: those above, and each `not`, `and` and `or`. */
export const MAX_TREE_NODES = 256;
export const MAX_SET_VALUES = 256;
export const MAX_FUNCTION_NESTING = 4;
/** Largest result of a function, in bytes: a longer one fails the evaluation. */
export const MAX_RESULT_BYTES = 8192;
/** Longest string literal, in bytes of UTF-8. */
export const MAX_STRING_BYTES = 16_384;
/** Names of headers, cookies and arguments, in characters. */
export const MAX_NAME = 64;
/** Characters of a regular expression. */
export const MAX_REGEX = 256;
/** Largest bound of a repetition in a regular expression. */
export const MAX_REPEAT = 1000;
/** Bytes of a wildcard pattern. */
export const MAX_WILDCARD_BYTES = 1024;
export const MAX_STARS = 8;
/** Bytes of a replacement. */
export const MAX_REPLACEMENT_BYTES = 1024;
/** Highest group or star that a replacement can name. */
export const MAX_CAPTURES = 8;
/** Largest offset and length of substring. */
export const MAX_SUBSTRING = 65_536;
