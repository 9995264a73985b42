// Who may import whom. Each rule's comment tells what to do instead; `npm run check` prints it beside the violation.
const npm = (names) => `^node_modules/(${names})(/|$)`;

/** Everything inside the repository that is source. */
const SOURCE = '^(agents|bench|bin|client|contract|migrations|mixins|models|pipeline|proto|runtime|services|test)/';

module.exports = {
  forbidden: [
    {
      name: 'no-circular',
      comment: 'Two files that import each other are one concept: move what both need into a third file.',
      severity: 'error',
      from: { path: SOURCE },
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'no-unresolvable',
      comment:
        'The import leads nowhere: mend the path (relative imports end in .ts) or add the package to package.json.',
      severity: 'error',
      // Pages of shared parts import as the Web UI does; its build and its types find what they name.
      from: { path: SOURCE, pathNot: '^test/components/' },
      to: { couldNotResolve: true },
    },
    {
      name: 'contract-is-pure',
      comment:
        'The contract runs in the browser too: it may import only itself and typebox. Put code with I/O into services/ or runtime/.',
      severity: 'error',
      from: { path: '^contract/' },
      to: { pathNot: ['^contract/', npm('typebox|ipaddr.js')] },
    },
    {
      name: 'client-stands-alone',
      comment: 'The client is installed elsewhere by itself: what it needs of the contract is generated into it.',
      severity: 'error',
      from: { path: '^client/' },
      to: { pathNot: '^client/' },
    },
    {
      name: 'product-has-no-client',
      comment: 'The client is for programs outside: parts of the product call actions of services.',
      severity: 'error',
      from: { path: '^(agents|console|contract|migrations|mixins|models|pipeline|proto|runtime|services)/' },
      to: { path: '^client/' },
    },
    {
      name: 'models-are-storage',
      comment:
        'A model knows its table: contract types, objection, knex and pg only. Put decisions into the slice that owns the table.',
      severity: 'error',
      from: { path: '^models/' },
      to: {
        path: '^(agents|bench|bin|console|migrations|mixins|pipeline|runtime|services|test)/',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'migrations-stand-alone',
      comment: 'A migration must do the same in a year: it may not import code that changes. Copy the value it needs.',
      severity: 'error',
      from: { path: '^migrations/[0-9]' },
      to: { pathNot: npm('knex|pg') },
    },
    {
      name: 'shared-parts-know-no-service',
      comment:
        'What several services mix in or run on cannot know one of them: pass the function in, or move the code into the service.',
      severity: 'error',
      from: { path: '^(mixins|pipeline|runtime)/' },
      to: { path: '^(agents|bench|bin|console|migrations|services|test)/' },
    },
    {
      name: 'runtime-is-the-ground',
      comment:
        'The platform of a process knows no table and no change: put what reads tables into models/, what carries a change ' +
        'to nodes into pipeline/, and what service schemas attach into mixins/.',
      severity: 'error',
      from: { path: '^runtime/' },
      to: { path: '^(mixins|models|pipeline)/' },
    },
    {
      name: 'pipeline-knows-no-mixin',
      comment: 'The change pipeline stands above models/ and below mixins/: pass the function in.',
      severity: 'error',
      from: { path: '^pipeline/' },
      to: { path: '^mixins/' },
    },
    {
      name: 'slices-are-islands',
      comment:
        "A service folder imports its own files only: move what two need into models/, runtime/ or mixins/, or call the other's " +
        'action, or add to a list of all services in feature.ts (mixins/service-feature.ts). dns/adapters/ is for all of them.',
      severity: 'error',
      from: { path: '^services/([^/]+)/', pathNot: '^services/gen/' },
      to: { path: '^services/([^/]+)/', pathNot: '^services/($1|gen|dns/adapters)/' },
    },
    {
      name: 'core-knows-no-moleculer',
      comment: 'Only *.service.ts and mixins/ know Moleculer: pass what the function needs as an argument.',
      severity: 'error',
      from: {
        path: '^services/',
        pathNot: ['[.]service[.]ts$', '^services/[^/]+[.]ts$', '^services/api-gateway/'],
      },
      to: { path: npm('moleculer'), dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'sql-through-models',
      comment:
        'Services use `Tx` from runtime/write.ts and named queries of the models, not objection or knex themselves.',
      severity: 'error',
      from: { path: '^services/' },
      to: { path: npm('objection|knex') },
    },
    {
      name: 'gateway-has-no-tables',
      comment:
        'The gateway knows procedures, not tables: add a procedure to the service that owns the table and call it. ' +
        'models/db/recent.ts shares answers, whoever gives them.',
      severity: 'error',
      from: { path: '^services/api-gateway/' },
      to: { path: '^models/', pathNot: '^models/db/recent[.]ts$', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'agents-know-no-console',
      comment:
        'An agent is installed without the console: it shares protobuf messages and contract/capabilities.ts only.',
      severity: 'error',
      from: { path: '^agents/' },
      to: {
        path: '^(bench|bin|console|contract|migrations|mixins|models|pipeline|runtime|services|test)/',
        pathNot: '^contract/capabilities[.]ts$',
      },
    },
    {
      name: 'pages-know-the-contract',
      comment:
        'The Web UI meets the console over its API: it may import console/ and contract/, a procedure from its own file ' +
        'and never from contract/index.ts, which would bring all of them into the browser.',
      severity: 'error',
      from: { path: '^console/' },
      to: {
        path: '^(agents|bench|bin|contract/(index|openapi)|migrations|mixins|models|pipeline|proto|runtime|services|test)[./]',
      },
    },
    {
      name: 'shared-knows-no-feature',
      comment: 'What all pages share cannot know one of them: pass it in, or move it into the feature folder.',
      severity: 'error',
      from: { path: '^console/src/shared/' },
      to: { path: '^console/src/(features|app)/' },
    },
    {
      name: 'features-are-islands',
      comment:
        "A feature folder imports its own files, shared ones, app/feature.ts and what is in another feature's public/ (and names " +
        'that feature in `uses`): move what two need there, or into shared/ where it knows no feature.',
      severity: 'error',
      from: { path: '^console/src/features/([^/]+)/' },
      to: { path: '^console/src/features/([^/]+)/', pathNot: '^console/src/features/($1|[^/]+/public)/' },
    },
    {
      name: 'console-knows-no-agent',
      comment: 'The console meets an agent over the node channel only: share the message in proto/.',
      severity: 'error',
      from: { path: '^(contract|migrations|mixins|models|pipeline|runtime|services)/' },
      to: { path: '^agents/' },
    },
    {
      name: 'proto-is-generated',
      comment:
        'proto/ holds messages and what both ends compute from them: it may import @bufbuild/protobuf and node modules only.',
      severity: 'error',
      from: { path: '^proto/' },
      to: { path: '^(agents|bench|bin|console|contract|migrations|mixins|models|pipeline|runtime|services|test)/' },
    },
    {
      name: 'nobody-imports-test',
      comment: 'Tests and their helpers are not shipped: move what is needed into the part that owns it.',
      severity: 'error',
      from: { pathNot: '^test/' },
      to: { path: '^test/' },
    },
    {
      name: 'tools-know-no-benchmark',
      comment: 'Benchmarks use tools, not the other way round: move what both need into bin/lib/.',
      severity: 'error',
      from: { path: '^bin/' },
      to: { path: '^bench/' },
    },
    {
      name: 'stories-use-the-front-door',
      comment:
        'An end-to-end test sees only what a user sees: it may import contract, proto, test/helpers and the fleet simulator.',
      severity: 'error',
      from: { path: '^test/e2e/' },
      to: {
        path: '^(agents|bench|bin|migrations|mixins|models|pipeline|runtime|services)/',
        pathNot: '^bench/(fleet|lib)/',
      },
    },
    {
      name: 'no-dev-packages-in-product',
      comment:
        'The package is not there in production: move it to dependencies, or the import into bin/, bench/ or test/.',
      severity: 'error',
      from: {
        path: '^(agents|contract|migrations|mixins|models|pipeline|proto|runtime|services)/',
        pathNot: '[.]d[.]ts$',
      },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'], pathNot: '^node_modules/@types/' },
    },
  ],
  options: {
    doNotFollow: { path: ['node_modules', '^proto/gen/'] },
    exclude: { path: ['^data/', '^[.]cache/', '^console/dist/'] },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      extensions: ['.ts', '.js', '.json'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
};
