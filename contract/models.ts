// Names of the objects that clients meet. Answers, and inputs where they take the same object, refer to them in the
// OpenAPI document; typed clients have them as types. What a file of resources/ exports as an object is one.
import Type, { type TSchema } from 'typebox';
import { RESOURCE_FILES } from './gen/resources.ts';
import { CcThresholds } from './scalars/cc-thresholds.ts';
import { Level } from './scalars/challenge.ts';

const ofResources = RESOURCE_FILES.flatMap((file) => Object.entries<unknown>(file)).filter(
  (named): named is [string, TSchema] => Type.IsObject(named[1]),
);

export const MODELS: Readonly<Record<string, TSchema>> = Object.fromEntries(
  [...ofResources, ['CcThresholds', CcThresholds] as const, ['Level', Level] as const].sort(([a], [b]) =>
    a < b ? -1 : 1,
  ),
);
