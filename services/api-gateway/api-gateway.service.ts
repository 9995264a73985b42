// The web port. moleculer-web turns procedures into aliases, finds a process for the action, calls it and hands the
// answer on; what comes before (paths, credentials, limits, bodies) is the guard's (gateway.ts), because there the stock
// handling is too lenient: it trims slashes, takes OPTIONS for the method it announces and merges parameters.
import { join } from 'node:path';
import type { Context, ServiceBroker, ServiceSchema } from 'moleculer';
import ApiGateway from 'moleculer-web';
import { PROCEDURES } from '../../contract/index.ts';
import type { CallMeta } from '../../mixins/contract-service.ts';
import type { Role } from '../../runtime/env.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { Answerer } from './answerer.ts';
import type { KeyKind } from './credentials.ts';
import { downloads } from './downloads.ts';
import type { Exchange } from './exchange.ts';
import { Gateway, rpcPath } from './gateway.ts';
import { installScript } from './install-script.ts';
import { type KnownCredentials, knownCredentials } from './known-credentials.ts';
import { LastUsed } from './last-used.ts';
import { LiveHub } from './live/live-hub.ts';
import { streamersOf } from './live/streamers.ts';
import { TailHub } from './live/tail-hub.ts';
import { createRateLimit } from './rate-limit.ts';
import { staticFiles } from './static-files.ts';
import { webListener } from './web-listener.ts';

export const roles: Role[] = ['app'];

const UI_FOLDER = join(import.meta.dirname, '../../console/dist');
/** Who notes the use of keys of a kind. */
const OWNERS: Readonly<Record<KeyKind, string>> = { access_key: 'accessKeys', service_account: 'serviceAccounts' };

/** An alias as moleculer-web makes it. */
interface Alias {
  action: string;
  route: unknown;
}

/** The parts of moleculer-web that are used. */
interface WebService {
  broker: ServiceBroker & { ContextFactory: ContextFactory };
  aliases: Alias[];
  aliasHandler(request: object, response: object, alias: Alias): Promise<unknown>;
}

/** A request on its way through moleculer-web. */
interface Answered {
  $exchange: Exchange;
  $ctx: Context<object, CallMeta>;
  $answered: Promise<void>;
}

interface ContextFactory {
  create(broker: ServiceBroker, endpoint: null, params: object, options: { meta: object }): Context<object, CallMeta>;
}

export default (runtime: Runtime): ServiceSchema => {
  const answers = new Answerer(runtime);
  let gateway: Gateway;
  let credentials: KnownCredentials;
  let aliases: ReadonlyMap<string, Alias>;
  let stop: () => Promise<void> = async () => undefined;
  const answered = ({ $exchange, $ctx: { meta } }: Answered, output: unknown): Promise<void> => {
    const answer = () => answers.output($exchange, output, meta.changes);
    return meta.credentialsEnded ? credentials.notices.heardEverywhere().then(answer) : answer();
  };
  return {
    name: 'api-gateway',
    mixins: [ApiGateway as unknown as ServiceSchema],
    settings: {
      // The listener is opened by the process, once everything has started.
      server: false,
      logRouteRegistration: null,
      optimizeOrder: false,
      routes: [
        { path: '/api/v1', ...ROUTE, aliases: apiAliases() },
        { path: '/rpc', ...ROUTE, aliases: rpcAliases() },
      ],
    },
    actions: { rest: false, listAliases: false, addRoute: false, removeRoute: false },
    methods: {
      sendResponse(request: Answered, _response: unknown, output: unknown) {
        request.$answered = answered(request, output);
      },
    },
    async created(this: WebService) {
      runtime.listeners.push(webListener(runtime, (request, response) => void gateway.handle(request, response)));
    },
    async started(this: WebService) {
      aliases = new Map(this.aliases.map((alias) => [alias.action, alias]));
      const { broker } = this;
      const warn = (err: unknown) => runtime.log.warn({ err }, 'last use of keys not recorded');
      const usesOf = (kind: KeyKind) =>
        new LastUsed((used) => broker.call(`${OWNERS[kind]}.touch`, { keys: used }), warn);
      const lastUsed = { access_key: usesOf('access_key'), service_account: usesOf('service_account') };
      const liveSessions = (tokens: readonly string[]) =>
        broker.call<boolean[], object>('auth.liveSessions', { tokens });
      const live = new LiveHub(runtime, liveSessions);
      const tails = new TailHub(runtime, liveSessions);
      credentials = knownCredentials(
        runtime,
        (action, input) => broker.call(action, input),
        () => {
          void live.checkSessions();
          void tails.checkSessions();
        },
      );
      await credentials.notices.start();
      stop = async () => {
        await credentials.notices.stop();
        await Promise.all([live.stop(), tails.stop()]);
        await Promise.all(Object.values(lastUsed).map((uses) => uses.stop().catch(warn)));
      };
      const dispatch = {
        procedure: async (exchange: Exchange, input: Record<string, unknown>, meta: CallMeta) => {
          const alias = aliases.get(exchange.procedure!.name)!;
          const context = broker.ContextFactory.create(broker, null, {}, { meta });
          const request = exchange.request as unknown as Record<string, unknown>;
          Object.assign(request, {
            $ctx: context,
            $route: alias.route,
            $alias: alias,
            $params: input,
            $exchange: exchange,
          });
          await this.aliasHandler(request, exchange.response, alias);
          await request.$answered;
        },
        call: <T>(action: string, input: unknown, meta?: CallMeta) =>
          broker.call<T, object>(action, input as object, meta ? { meta } : {}),
      };
      gateway = new Gateway({
        runtime,
        answers,
        dispatch,
        credentials,
        lastUsed,
        rateLimit: createRateLimit(runtime),
        files: await staticFiles(UI_FOLDER),
        downloads: downloads(runtime.env.downloadsDir),
        installer: installScript(runtime.env.publicUrl),
        streamers: streamersOf(live, tails, (input) => broker.call('logs.tailSearch', input)),
      });
    },
    async stopped() {
      await stop();
    },
  } as unknown as ServiceSchema;
};

const ROUTE = { mappingPolicy: 'restrict', bodyParsers: false, mergeParams: true, autoAliases: false, logging: false };

function apiAliases(): Record<string, string> {
  return Object.fromEntries(
    [...PROCEDURES.values()].map(({ method, path, name }) => [
      `${method} ${path.replace(/\{([^}]+)\}/g, ':$1')}`,
      name,
    ]),
  );
}

function rpcAliases(): Record<string, string> {
  return Object.fromEntries(
    [...PROCEDURES.values()].map((procedure) => [`POST ${rpcPath(procedure)}`, procedure.name]),
  );
}
