// The manifests cannot be applied here, so what they refer to is checked against the code.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import yaml from 'js-yaml';
import { root } from '../../bin/lib/root.ts';
import { ROLES, VARIABLES } from '../../runtime/env-variables.ts';

interface Probe {
  httpGet: { path: string; port: string };
}

interface Container {
  name: string;
  image: string;
  command?: string[];
  env?: { name: string; value: string }[];
  envFrom?: { configMapRef?: { name: string }; secretRef?: { name: string } }[];
  ports?: { name: string; containerPort: number }[];
  startupProbe?: Probe;
  livenessProbe?: Probe;
  readinessProbe?: Probe;
  securityContext: Record<string, unknown>;
  volumeMounts: { name: string; mountPath: string }[];
}

interface Manifest {
  file: string;
  kind: string;
  metadata: { name: string };
  data?: Record<string, string>;
  resources?: string[];
  images?: { name: string }[];
  patches?: { target: { name?: string }; patch: string }[];
  spec: {
    selector?: Record<string, unknown>;
    ports?: { targetPort: string }[];
    template?: {
      metadata: { labels: Record<string, string> };
      spec: { containers: Container[]; securityContext: object };
    };
  };
}

const folder = join(root, 'k8s');

function manifests(part: string): Manifest[] {
  const files = readdirSync(join(folder, part)).filter((name) => name.endsWith('.yaml'));
  return files.flatMap((file) =>
    (yaml.safeLoadAll(readFileSync(join(folder, part, file), 'utf8')) as Manifest[]).map((manifest) => ({
      ...manifest,
      file,
    })),
  );
}

const base = manifests('base');
/** Of single services; the folders in it but `base` are one each. */
const services = manifests('services/base');
const single = readdirSync(join(folder, 'services')).filter((name) => name !== 'base');
const workloads = [...base, ...services].filter((manifest) => manifest.spec?.template);
const containers = workloads.flatMap((workload) => workload.spec.template!.spec.containers);
const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8');

test('every file of a kustomization exists, and every manifest is in it', (t) => {
  for (const part of [
    'base',
    'overlays/example',
    'services/base',
    'overlays/services',
    ...single.map((name) => `services/${name}`),
  ]) {
    const all = manifests(part);
    const resources = all.find((manifest) => manifest.kind === 'Kustomization')!.resources!;
    for (const resource of resources) t.true(existsSync(join(folder, part, resource)), `${part}: ${resource}`);
    const files = new Set(all.map((manifest) => manifest.file));
    files.delete('kustomization.yaml');
    t.deepEqual([...files].sort(), resources.filter((name) => name.endsWith('.yaml')).sort());
  }
});

test('a deployment runs each role of the console but `all`, and a job migrates', (t) => {
  const roles = containers.flatMap((container) => container.env ?? []).filter(({ name }) => name === 'ROLE');
  t.deepEqual(roles.map(({ value }) => value).sort(), ROLES.filter((role) => role !== 'all').sort());
  t.truthy(workloads.find(({ kind, metadata }) => kind === 'Job' && metadata.name === 'migrate'));
});

/** The only value that a patch of a kustomization sets in the environment of its deployment. */
function patchedValue(part: string): string {
  const [{ patches }] = manifests(part) as [Manifest];
  const { patch } = patches!.find((each) => each.patch.includes('/env/'))!;
  const [[{ value }]] = yaml.safeLoadAll(patch) as [[{ value: string | { value: string } }]];
  return typeof value === 'string' ? value : value.value;
}

test('single services exist, are asked for by name, and are left out of the web port', (t) => {
  for (const name of single) {
    t.true(existsSync(join(root, 'services', name, `${name}.service.ts`)), name);
    t.is(patchedValue(`services/${name}`), name);
  }
  const used = manifests('overlays/services')[0]!.resources!.flatMap((name) => /services\/(.+)/.exec(name)?.[1] ?? []);
  t.deepEqual(used.toSorted(), single.toSorted());
  t.is(patchedValue('overlays/services'), used.map((name) => `-${name}`).join(','));
});

test('every variable is one the console knows', (t) => {
  const known = new Set<string>(VARIABLES.map(({ name }) => name));
  const used = [
    ...containers.flatMap((container) => (container.env ?? []).map(({ name }) => name)),
    ...base.flatMap((manifest) => (manifest.kind === 'ConfigMap' ? Object.keys(manifest.data ?? {}) : [])),
  ];
  t.deepEqual(
    used.filter((name) => !known.has(name)),
    [],
  );
});

test('every required variable comes from the config map or is named with the secret', (t) => {
  const config = base.find(({ kind }) => kind === 'ConfigMap')!.data!;
  const readme = readFileSync(join(folder, 'base/kustomization.yaml'), 'utf8');
  for (const { name, required } of VARIABLES) if (required) t.true(name in config || readme.includes(`${name}=`), name);
  for (const container of containers) {
    t.deepEqual(container.envFrom, [{ configMapRef: { name: 'console' } }, { secretRef: { name: 'console' } }]);
  }
});

test('every container runs the console image, whose commands exist', (t) => {
  const images = base.find(({ kind }) => kind === 'Kustomization')!.images!.map(({ name }) => name);
  for (const { image, command = [] } of containers) {
    t.true(images.includes(image), image);
    if (command.length > 0) t.true(existsSync(join(root, command.at(-1)!)), command.join(' '));
  }
  for (const [, copied] of dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)) {
    for (const path of copied!.split(' ')) t.true(existsSync(join(root, path)), `Dockerfile copies ${path}`);
  }
});

/** What somebody starts in an image, or while one is built. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  console: ['bin/backup.ts', 'bin/console.ts', 'bin/migrate.ts', 'bin/recover.ts', 'bin/reseal.ts', 'bin/restore.ts'],
  edge: ['agents/edge/main.ts'],
  downloads: ['bin/package-node.ts'],
};

/** Sources that a stage of the Dockerfile has, those of the stage before it included. */
function sourcesOf(stage: string): string[] {
  const [, base, text] = new RegExp(`^FROM (\\S+) AS ${stage}\n([\\s\\S]*?)(?=^FROM |$(?![\\s\\S]))`, 'm').exec(
    dockerfile,
  )!;
  const own = [...text!.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, copied]) => copied!.split(' '));
  return [
    ...(dockerfile.includes(` AS ${base}\n`) ? sourcesOf(base!) : []),
    ...own.map((path) => path.replace(/\/$/, '')),
  ];
}

/** The files of ours that a program loads, and may load later. */
function loadedBy(entry: string, found = new Set<string>()): Set<string> {
  if (found.has(entry)) return found;
  found.add(entry);
  const text = readFileSync(join(root, entry), 'utf8');
  for (const [, types, from, alone] of text.matchAll(
    /^(?:import|export) (type )?[^;'"]*?from '(\.[^']+)'|import\(?\s?'(\.[^']+)'/gm,
  )) {
    if (!types) loadedBy(join(entry, '..', (from ?? alone)!), found);
  }
  return found;
}

test('what is started in an image finds everything that it loads', (t) => {
  for (const [stage, commands] of Object.entries(COMMANDS)) {
    const sources = sourcesOf(stage);
    const loaded = new Set(commands.flatMap((command) => [...loadedBy(command)]));
    t.true(loaded.size > commands.length);
    const missing = [...loaded].filter((file) => !sources.some((path) => file === path || file.startsWith(`${path}/`)));
    t.deepEqual(missing, [], stage);
  }
});

test('probes and services lead to ports the container has', (t) => {
  for (const container of containers) {
    const ports = new Set((container.ports ?? []).map(({ name }) => name));
    for (const probe of [container.startupProbe, container.livenessProbe, container.readinessProbe]) {
      if (!probe) continue;
      t.true(ports.has(probe.httpGet.port));
      t.true(['/livez', '/readyz'].includes(probe.httpGet.path));
    }
  }
  const named = new Set(containers.flatMap(({ ports = [] }) => ports.map(({ name }) => name)));
  const exposed = base.filter(({ kind }) => kind === 'Service');
  t.is(exposed.length, 2);
  for (const { spec } of exposed) for (const { targetPort } of spec.ports!) t.true(named.has(targetPort), targetPort);
});

test('no container may gain rights or write outside /tmp', (t) => {
  for (const workload of workloads) {
    t.like(workload.spec.template!.spec.securityContext, {
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    });
  }
  for (const { securityContext, volumeMounts } of containers) {
    t.deepEqual(securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    t.deepEqual(volumeMounts, [{ name: 'tmp', mountPath: '/tmp' }]);
  }
});
