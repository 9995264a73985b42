import Type from 'typebox';
import { procedure, resource } from '../procedure.ts';
import { Id, Input } from '../scalars/common.ts';
import { MAX_PLATFORM_RULES, MAX_SITE_RULES, RuleInput } from '../scalars/rule.ts';
import { RuleTrace as RuleTraceSchema } from '../scalars/rule-trace.ts';
import { TriedRequest, TriedResponse } from '../scalars/tried-request.ts';

export const RuleTrace = RuleTraceSchema;

export const ruleTrial = resource('sites.rules', {
  try: procedure({
    method: 'POST',
    path: '/sites/{id}/rules/try',
    summary: 'Simulates rules on an invented request in every phase. Nothing is saved, counted or sent.',
    input: Input({
      id: Id,
      request: TriedRequest,
      response: Type.Optional({
        ...TriedResponse,
        description: 'Response of the cache or an origin. If omitted, the response phases are skipped.',
      }),
      rules: Type.Optional(
        Type.Array(RuleInput, {
          maxItems: MAX_SITE_RULES,
          description: 'Rules to try instead of those of the site, for example before saving them.',
        }),
      ),
      platformRules: Type.Optional(
        Type.Array(RuleInput, {
          maxItems: MAX_PLATFORM_RULES,
          description: 'Rules to try instead of those of the platform.',
        }),
      ),
    }),
    output: RuleTrace,
    status: 200,
    access: 'operator',
    readOnly: false,
    audit: null,
    idempotency: 'accepted',
    bodyLimit: 24 * 1024 * 1024,
    errors: ['SITE_NOT_FOUND', 'RULE_INVALID', 'IP_LIST_REFERENCE_UNKNOWN', 'ORIGIN_HOST_HEADER_INVALID'],
  }),
});
