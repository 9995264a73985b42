// Runs rules over a made-up request as nodes do: phase by phase, in each the platform's rules before the site's.
import { PHASES, type Phase, RESPONSE_PHASES } from '../../../contract/expression/phases.ts';
import type { Tree } from '../../../contract/expression/tree.ts';
import type { After, Outcome, PhaseRun, RuleRun, RuleTrace } from '../../../contract/scalars/rule-trace.ts';
import type { Bytes } from '../evaluate/bytes.ts';
import { type Evaluated, evaluateCondition, evaluateFor, type FieldValue } from '../evaluate/evaluate.ts';
import { EvaluationFailure } from '../evaluate/failure.ts';
import { urlDecodePath } from '../evaluate/functions.ts';
import { canonicalPath } from '../evaluate/request-values.ts';
import { act, nameOf } from './actions.ts';
import { type Decision, Exchange } from './exchange.ts';
import type { Headers } from './headers.ts';
import { redirectTarget } from './query-edit.ts';
import { Reads, roomForReads } from './reads.ts';
import type { RunRequest, RunSurroundings } from './request.ts';
import type { RunRule } from './rule.ts';
import { shown } from './shown.ts';
import { TooCostly, UnknownValue } from './unknown.ts';

/** Steps of patterns and bytes of values that all rules of a run may take: some tenths of a second. */
export const MAX_COST = 8_000_000;

/** What becomes of a request. Throws nothing, whatever it is. */
export function runRules(request: RunRequest, around: RunSurroundings, maxCost = MAX_COST): RuleTrace {
  return new Run(request, around, maxCost).trace();
}

class Run {
  readonly exchange: Exchange;
  readonly around: RunSurroundings;
  readonly room = roomForReads();
  cost = 0;
  readonly maxCost: number;
  tooCostly = false;

  constructor(request: RunRequest, around: RunSurroundings, maxCost: number) {
    this.exchange = new Exchange(request);
    this.around = around;
    this.maxCost = maxCost;
  }

  trace(): RuleTrace {
    const { exchange, around } = this;
    if (exchange.request.ambiguousPath) {
      exchange.decision = { kind: 'path_ambiguous', status: 400, error: 'path-ambiguous' };
    }
    const [list] = around.blockLists;
    exchange.exempt = around.allowLists.length > 0;
    if (list !== undefined && !exchange.exempt) {
      exchange.decision ??= { kind: 'listed', status: 403, error: 'policy-denied', list };
    }
    const phases: PhaseRun[] = [];
    for (const phase of PHASES) {
      if (phase === RESPONSE_PHASES[0]) this.endOfRequest();
      phases.push(this.phase(phase));
    }
    return { outcome: this.outcome(), phases, unknown: [...exchange.unknown].sort(), complete: !this.tooCostly };
  }

  phase(phase: Phase): PhaseRun {
    const rules: RuleRun[] = [];
    for (const platform of [true, false]) {
      let allowed = false;
      for (const rule of this.around.rules) {
        if (rule.phase !== phase || rule.platform !== platform) continue;
        const run = this.rule(rule, allowed);
        allowed ||= run.effects.some(({ kind }) => kind === 'allowed');
        rules.push(run);
      }
    }
    if (phase === 'redirect') this.bulkRedirect();
    return { phase, rules, after: after(this.exchange) };
  }

  rule(rule: RunRule, allowed: boolean): RuleRun {
    const run: RuleRun = {
      ...nameOf(rule),
      result: 'skipped',
      skipped: this.skipped(rule, allowed),
      failure: null,
      unknown: null,
      reads: [],
      readsLeftOut: 0,
      effects: [],
    };
    const { compiled } = rule;
    if (run.skipped || !compiled) return run;
    const reads = new Reads(this.room);
    run.reads = reads.shown;
    try {
      const holds = taken(evaluateCondition(compiled.condition, this.surroundings(reads, '/expression')));
      run.result = holds ? 'matched' : 'not_matched';
      if (holds) {
        run.effects = act(this.exchange, rule, compiled, ({ part, tree }, use) =>
          taken(evaluateFor(use, tree, this.surroundings(reads, part))),
        );
      }
    } catch (error) {
      this.ended(rule, run, error);
    }
    run.readsLeftOut = reads.leftOut;
    return run;
  }

  skipped({ enabled, compiled, phase }: RunRule, allowed: boolean): RuleRun['skipped'] {
    if (!enabled) return 'disabled';
    if (!compiled) return 'broken';
    if (this.tooCostly) return 'too_costly';
    const { response } = this.exchange;
    // What a node answers by itself is not compressed by rules.
    if (phase === 'compression' && response?.ofEdge) return 'no_response';
    if (RESPONSE_PHASES.includes(phase)) return response ? null : 'no_response';
    if (this.exchange.decision) return 'ended';
    return allowed ? 'allowed' : null;
  }

  /** Notes why a rule was not evaluated to its end. */
  ended(rule: RunRule, run: RuleRun, error: unknown): void {
    if (error instanceof UnknownValue) {
      run.result = 'unknown';
      run.unknown = error.field;
    } else if (error instanceof TooCostly) {
      run.result = 'skipped';
      run.skipped = 'too_costly';
      this.tooCostly = true;
    } else if (error instanceof EvaluationFailure) {
      run.result = 'failed';
      run.failure = error.reason;
      if (RESPONSE_PHASES.includes(rule.phase)) return;
      this.exchange.decision = { kind: 'failure', status: 503, error: 'policy-unavailable', rule: nameOf(rule) };
    } else throw error;
  }

  surroundings(reads: Reads, part: string) {
    return {
      field: this.exchange.field.bind(this.exchange),
      inList: this.around.inList,
      spend: (steps: number) => this.spend(steps),
      trace: (node: Tree, value: FieldValue) => {
        this.spend(1 + (typeof value === 'string' ? value.length : 0));
        reads.add(part, node, value);
      },
    };
  }

  /** Throws TooCostly. */
  spend(steps: number): void {
    this.cost += steps;
    if (this.cost > this.maxCost) throw new TooCostly();
  }

  /** After the redirects of both lists, and by what the client asked for. */
  bulkRedirect(): void {
    const { exchange } = this;
    if (exchange.decision || this.tooCostly) return;
    for (const key of bulkRedirectKeys(exchange.request)) {
      const found = this.around.bulkRedirect(key);
      if (!found) continue;
      const { source, target, statusCode: status, preserveQuery } = found;
      const query = preserveQuery ? uriParts(exchange.request).query : '';
      const location = redirectTarget(target, query, { set: [], remove: [] });
      exchange.decision = { kind: 'redirect', status, error: null, location, bulkRedirect: source };
      return;
    }
  }

  endOfRequest(): void {
    const { exchange } = this;
    exchange.decision ??= this.httpsForced() ?? this.bodyTooLarge();
    exchange.respond(exchange.request.response);
  }

  httpsForced(): Decision | null {
    const { overrides, overriddenBy, request } = this.exchange;
    if (request.scheme === 'https') return null;
    const https = this.around.https(request.host);
    if (https === 'pending') return null;
    if (!((overrides.get('forceHttps') as boolean | undefined) ?? https?.forced ?? false)) return null;
    const rule = overriddenBy.get('forceHttps') ?? null;
    if (!https) return { kind: 'https_forced', status: 503, error: 'policy-denied', rule };
    const port = https.port === 443 ? '' : `:${https.port}`;
    const location = `https://${request.host}${port}${request.uri}`;
    return { kind: 'https_forced', status: https.status, error: null, location, rule };
  }

  bodyTooLarge(): Decision | null {
    const { overrides, overriddenBy, request } = this.exchange;
    const limit = (overrides.get('requestBodyLimit') as number | undefined) ?? this.around.bodyLimit;
    if (limit === 0 || (request.bodySize ?? 0) <= limit) return null;
    const rule = overriddenBy.get('requestBodyLimit') ?? null;
    return { kind: 'body_too_large', status: 413, error: 'body-too-large', rule };
  }

  outcome(): Outcome {
    const { decision, origin, exempt, limits } = this.exchange;
    return {
      kind: decision?.kind ?? 'origin',
      status: decision?.status ?? null,
      error: decision?.error ?? null,
      location: decision?.location === undefined ? null : shown(decision.location),
      rule: decision?.rule ?? null,
      bulkRedirect: decision?.bulkRedirect ?? null,
      list: decision?.list ?? null,
      challenge: decision?.challenge ?? null,
      exempt,
      limits,
      originGroup: decision ? null : origin.originGroup,
    };
  }
}

/** What a bulk redirect of the request can be found by; the first that there is counts. */
export function bulkRedirectKeys(request: RunRequest): Bytes[] {
  const path = canonicalPath(urlDecodePath(uriParts(request).path));
  return [request.host + path, path];
}

function uriParts({ uri }: RunRequest): { path: Bytes; query: Bytes } {
  const mark = uri.indexOf('?');
  return mark < 0 ? { path: uri, query: '' } : { path: uri.slice(0, mark), query: uri.slice(mark + 1) };
}

function taken<T>(result: Evaluated<T>): T {
  if (!result.ok) throw new EvaluationFailure(result.failure);
  return result.value;
}

function after({ path, query, target, requestHeaders, overrides, origin, response, codings }: Exchange): After {
  return {
    path: shown(path),
    query: shown(query),
    target: shown(target),
    requestHeaders: changesOf(requestHeaders),
    overrides: [...overrides]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, value]) => ({ name, value: shown(value) })),
    ...origin,
    responseHeaders: response ? changesOf(response.headers) : [],
    codings: codings && [...codings],
  };
}

function changesOf(headers: Headers): After['requestHeaders'] {
  return headers.changes().map(({ name, lines }) => ({ name, lines: lines.map(shown) }));
}
