// What can be wrong with an expression. Each code has its words, and the parameters that the words have in braces.

const TABLE = {
  too_long: 'The expression is longer than {max} characters.',
  string_invalid: 'The string is not valid: it ends with a quote on the same line and has the escapes of JSON.',
  unexpected_character: 'This character can only stand in a string.',
  too_many_tokens: 'The expression has more than {max} words and signs.',
  unexpected_end: 'The expression ends too early.',
  unexpected_token: 'This cannot stand here.',
  expected_token: 'Here has to be this: {token}',
  too_complex: 'The expression is too complex.',

  expected_string: 'Here has to be a string in double quotes.',
  expected_integer: 'Here has to be a whole number.',
  expected_boolean: 'Here has to be true or false.',
  expected_ip: 'Here has to be an IP address or CIDR, without quotes.',

  header_name: 'A name of a header has 1 to 64 letters, digits and signs of tokens.',
  cookie_name: 'A name of a cookie has 1 to 64 letters, digits and signs of tokens.',
  argument_name: 'A name of a parameter has 1 to 64 printable ASCII characters and none of " # & =.',
  unknown_field: 'There is no such field.',
  response_field: 'Fields of the response can be read in the phases response-transform and compression only.',

  unknown_operator: 'This is no operator.',
  ordered_comparison: 'Only numbers can be compared by order.',
  string_operator: 'This operator goes with strings only.',

  list_reference: 'An IP list is named by $ and its name, after in, and for an address only.',
  unknown_list: 'There is no IP list {list}.',
  set_empty: 'The set has no values.',
  set_too_large: 'The set has more than {max} values.',

  unknown_function: 'There is no such function.',
  value_only_function: 'This function can stand in a value only, not in a condition.',
  function_repeated: 'This function can stand in an expression once only.',
  functions_too_deep: 'Functions can stand at most 4 deep in each other.',
  too_many_arguments: 'The function takes no more arguments.',
  too_few_arguments: 'The function takes more arguments.',
  argument_not_string: 'This argument has to be a string: a literal, or a field or function that has one.',
  literal_argument: 'This argument has to be a string in double quotes.',
  integer_argument: 'This argument has to be a whole number from {min} to {max}.',
  flags: 'The only flag is "s": case counts.',
  value_not_string: 'A value has to be a string: a literal, or a field or function that has one.',
  value_too_long: 'The string is longer than {max} bytes.',

  regex_too_long: 'The regular expression is longer than {max} characters.',
  regex_ascii: 'A regular expression has printable ASCII characters only.',
  regex_escape:
    'This escape is not known: \\d \\D \\w \\W \\b \\B \\t \\n \\r \\f, \\x00 to \\x7f, and a backslash before a sign are.',
  regex_group: 'Groups that start with (? are not known.',
  regex_parenthesis: 'This parenthesis has no other half.',
  regex_nothing_to_repeat: 'There is nothing to repeat: a repetition follows a character, an escape or a class.',
  regex_repetition: 'A repetition is {n}, {n,} or {n,m} with numbers up to 1000, the first one not the larger.',
  regex_brackets: 'A bracket or brace that means itself has a backslash before it.',
  regex_class_unterminated: 'The class is not closed.',
  regex_class_empty: 'The class has no characters.',
  regex_class_range: 'The range is not valid: it goes from a character to one that is not before it.',
  regex_class_dash: 'A dash that means itself stands first or last in its class, or has a backslash before it.',
  regex_class_bracket: 'A bracket in a class has a backslash before it.',
  regex_class_posix: 'POSIX classes are not known.',

  wildcard_too_long: 'The pattern is longer than {max} bytes.',
  wildcard_invalid: 'A pattern has no control characters.',
  wildcard_escape: 'A backslash stands before a star or a backslash only.',
  wildcard_too_many: 'The pattern has more than {max} stars.',
  replacement_invalid: 'A replacement has at most 1024 bytes and no control characters.',
  replacement_capture: 'The pattern has no group or star of this number.',
} as const;

export type ExpressionErrorCode = keyof typeof TABLE;

export const EXPRESSION_ERRORS: Readonly<Record<ExpressionErrorCode, string>> = TABLE;

/** What is wrong with an expression, and where: the first thing in the order of the source. */
export interface ExpressionError {
  readonly code: ExpressionErrorCode;
  /** 0-based offset in the source, in UTF-16 code units; the length of the source when it ends too early. */
  readonly position: number;
  readonly params: Readonly<Record<string, string>>;
  /** One English sentence, and what would be accepted where that is a short list. */
  readonly message: string;
}

/** Thrown inside this folder only; callers get {@link ExpressionError} as a value. */
export class ExpressionFault extends Error {
  readonly code: ExpressionErrorCode;
  readonly position: number;
  readonly params: Readonly<Record<string, string>>;
  readonly accepted: readonly string[];

  constructor(
    code: ExpressionErrorCode,
    position: number,
    params: Record<string, string>,
    accepted: readonly string[],
  ) {
    super(code);
    this.code = code;
    this.position = position;
    this.params = params;
    this.accepted = accepted;
  }
}

/** Throws {@link ExpressionFault}; `accepted` is what could stand there instead. */
export function refuse(
  code: ExpressionErrorCode,
  position: number,
  params: Record<string, string | number> = {},
  accepted: readonly string[] = [],
): never {
  const texts = Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]));
  throw new ExpressionFault(code, position, texts, accepted);
}

/** Calls `read`; what it refuses is refused at the position that `positionOf` makes of its index. */
export function atPositions<T>(read: () => T, positionOf: (index: number) => number): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ExpressionFault)) throw error;
    return refuse(error.code, positionOf(error.position), error.params, error.accepted);
  }
}

/** What a caller is told of a fault. */
export function errorOf({ code, position, params, accepted }: ExpressionFault): ExpressionError {
  const words = EXPRESSION_ERRORS[code].replace(/\{([a-z]+)\}/g, (text, name: string) =>
    Object.hasOwn(params, name) ? params[name]! : text,
  );
  const message = accepted.length === 0 ? words : `${words} Accepted: ${accepted.join(', ')}.`;
  return { code, position, params, message };
}
