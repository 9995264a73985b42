// A rule as it is run: its sources read, and everything that it leaves to a default said.
import type { FieldName } from '../../../contract/expression/fields.ts';
import type { Phase } from '../../../contract/expression/phases.ts';
import type { Condition, ValueExpression } from '../../../contract/expression/tree.ts';
import type { ChallengeType } from '../../../contract/scalars/challenge.ts';

/** A text node where nothing is computed. */
export interface RunValue {
  /** Path in the rule of what computes it. */
  readonly part: string;
  readonly tree: ValueExpression;
}

export interface RunParameter {
  readonly name: string;
  readonly value: RunValue;
}

export interface RunTarget {
  readonly target: RunValue;
  readonly preserveQuery: boolean;
  readonly setQuery: readonly RunParameter[];
  readonly removeQuery: readonly string[];
}

/** Settings by the names that rules have for them. */
export type Overrides = Readonly<Record<string, boolean | number | string>>;

/** What an origin is asked for in place of its own; "" and 0 leave it. */
export interface OriginChoice {
  readonly originGroup: string;
  readonly hostHeader: string;
  readonly sni: string;
  readonly port: number;
}

export type RunAction =
  | { readonly kind: 'block'; readonly statusCode: number }
  | { readonly kind: 'log' | 'allow' }
  | { readonly kind: 'challenge'; readonly type: ChallengeType }
  | ({ readonly kind: 'redirect'; readonly statusCode: number } & RunTarget)
  | ({ readonly kind: 'rewrite' } & RunTarget)
  /** Without a value the header is removed. */
  | {
      readonly kind: 'request_header' | 'response_header';
      readonly header: string;
      readonly value: RunValue | null;
      readonly append: boolean;
    }
  | { readonly kind: 'config'; readonly overrides: Overrides }
  | {
      readonly kind: 'rate_limit';
      readonly limit: number;
      readonly windowSeconds: number;
      /** As it is written. */
      readonly key: string;
      /** Whose values are counted apart. */
      readonly counted: { readonly field: FieldName; readonly name: string | null };
      readonly statusCode: number;
    }
  | ({ readonly kind: 'origin' } & OriginChoice)
  | { readonly kind: 'compression'; readonly algorithms: readonly string[] };

export interface RunRule {
  readonly id: string;
  readonly name: string;
  /** In its list, from 0. */
  readonly position: number;
  readonly platform: boolean;
  readonly phase: Phase;
  readonly enabled: boolean;
  /** Null for a saved rule that the language does not take any more. */
  readonly compiled: { readonly condition: Condition; readonly action: RunAction } | null;
}
