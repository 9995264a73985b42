// What can be wrong with an expression. Each code has its words, and the parameters that the words have in braces.

const TABLE = {
  too_long: 'The expression is longer than {max} characters.',
  string_invalid: 'The string is not valid. Close it with a double quote on the same line, and use JSON escapes.',
  unexpected_character: 'This character is allowed only in a string. Put the text in double quotes.',
  too_many_tokens: 'The expression has more than {max} tokens.',
  unexpected_end: 'The expression is incomplete.',
  unexpected_token: 'This token is not allowed here.',
  expected_token: 'Expected here: {token}',
  too_complex: 'The expression is too complex. Split it into several rules.',

  expected_string: 'Expected a string in double quotes.',
  expected_integer: 'Expected a whole number.',
  expected_boolean: 'Expected true or false.',
  expected_ip: 'Expected an IP address or CIDR without quotes.',

  header_name: 'A header name has 1 to 64 letters, digits or token characters such as - and _.',
  cookie_name: 'A cookie name has 1 to 64 letters, digits or token characters such as - and _.',
  argument_name: 'A parameter name has 1 to 64 printable ASCII characters other than " # & =.',
  unknown_field: 'This field does not exist.',
  response_field: 'Response fields can be read only in the phases response-transform and compression.',

  unknown_operator: 'This operator does not exist.',
  ordered_comparison: 'Only numbers can be compared by order.',
  string_operator: 'This operator applies only to strings.',

  list_reference: 'Write an IP list as $name after in, and only for an address.',
  unknown_list: 'The IP list {list} does not exist.',
  set_empty: 'The set has no values.',
  set_too_large: 'The set has more than {max} values.',

  unknown_function: 'This function does not exist.',
  value_only_function: 'This function is allowed only in a value, not in a condition.',
  function_repeated: 'This function is allowed only once in an expression.',
  functions_too_deep: 'Functions can be nested at most 4 deep.',
  too_many_arguments: 'The function has too many arguments.',
  too_few_arguments: 'The function has too few arguments.',
  argument_not_string: 'This argument must be a string: a literal, or a field or function that returns a string.',
  literal_argument: 'This argument must be a string in double quotes.',
  integer_argument: 'This argument must be a whole number from {min} to {max}.',
  flags: 'The only flag is "s", for case-sensitive.',
  value_not_string: 'A value must be a string: a literal, or a field or function that returns a string.',
  value_too_long: 'The string is longer than {max} bytes.',

  regex_too_long: 'The regular expression is longer than {max} characters.',
  regex_ascii: 'A regular expression may contain only printable ASCII characters.',
  regex_escape:
    'This escape is not supported. Use \\d \\D \\w \\W \\b \\B \\t \\n \\r \\f, \\x00 to \\x7f, or a backslash ' +
    'before a punctuation character.',
  regex_group: 'Groups that start with (? are not supported.',
  regex_parenthesis: 'This parenthesis has no counterpart.',
  regex_nothing_to_repeat: 'There is nothing to repeat. A repetition follows a character, an escape or a class.',
  regex_repetition: 'A repetition is {n}, {n,} or {n,m} with numbers up to 1000, and n is at most m.',
  regex_brackets: 'Put a backslash before a literal bracket or brace.',
  regex_class_unterminated: 'The class is not closed. Add ].',
  regex_class_empty: 'The class has no characters.',
  regex_class_range: 'The range is not valid. Its first character must not come after its last one.',
  regex_class_dash: 'A literal dash must be first or last in its class, or follow a backslash.',
  regex_class_bracket: 'Put a backslash before a bracket in a class.',
  regex_class_posix: 'POSIX classes are not supported.',

  wildcard_too_long: 'The pattern is longer than {max} bytes.',
  wildcard_invalid: 'A pattern must not contain control characters.',
  wildcard_escape: 'A backslash is allowed only before a star or a backslash.',
  wildcard_too_many: 'The pattern has more than {max} stars.',
  replacement_invalid: 'A replacement has at most 1024 bytes and no control characters.',
  replacement_capture: 'The pattern has no group or star with this number.',
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
