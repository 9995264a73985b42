// The metrics of the product, read from the code that registers them: console processes (prom-client) and the data plane
// of a node (Go).
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, SOURCE_FOLDERS } from './root.ts';

export interface Metric {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  labels: readonly string[];
  help: string;
}

/** Folders of TypeScript that no console process runs. */
const NOT_CONSOLE = new Set(['agents', 'bench', 'bin', 'client', 'console', 'test']);

/** Metrics of console processes, by name. */
export function consoleMetrics(): Metric[] {
  const folders = SOURCE_FOLDERS.filter((folder) => !NOT_CONSOLE.has(folder));
  return byName(folders.flatMap((folder) => texts(folder, /[.]ts$/).flatMap(promMetrics)));
}

/** Metrics of the data plane of a node, by name. */
export function edgeMetrics(): Metric[] {
  return byName(texts('agents/caddy', /(?<!_test)[.]go$/).flatMap(goMetrics));
}

function texts(folder: string, files: RegExp): string[] {
  const names = readdirSync(join(root, folder), { recursive: true }) as string[];
  return names.filter((name) => files.test(name)).map((name) => readFileSync(join(root, folder, name), 'utf8'));
}

const byName = (metrics: Metric[]) => metrics.sort((a, b) => (a.name < b.name ? -1 : 1));
const words = (list: string) => [...list.matchAll(/\w+/g)].map(([word]) => word);

/** `{ name: 'svc_…', help: '…', labelNames: […] }`, given to `new Counter` and the like. */
function promMetrics(text: string): Metric[] {
  return [...text.matchAll(/name: '(svc_\w+)'/g)].map((match) => {
    const name = match[1]!;
    const options = text.slice(match.index).split(/\bregist\w+/)[0]!;
    const help = /help: '([^']+)'/.exec(options)?.[1];
    const before = text.slice(0, match.index);
    const maker =
      /new (Counter|Gauge|Histogram)\b[^(]*\(\{\s*$/.exec(before) ?? /new (Counter|Gauge|Histogram)\(\w+\)/.exec(text);
    if (!help || !maker) throw new Error(`${name} has no help, or no type that can be read`);
    const shared = /labelNames,/.test(options) ? /labelNames = \[([^\]]*)\]/.exec(text) : null;
    const labels = words((shared ?? /labelNames: \[([^\]]*)\]/.exec(options))?.[1] ?? '');
    return { name, type: maker[1]!.toLowerCase() as Metric['type'], labels, help };
  });
}

/** `# HELP svc_… text\n# TYPE svc_… type` in texts, and rows of tables that are written that way. */
function goMetrics(source: string): Metric[] {
  const text = source.replaceAll(/"\s*\+\s*"/g, '');
  const written = [...text.matchAll(/# HELP (svc_\w+) ((?:(?!\\n).)+)\\n# TYPE \1 (\w+)/g)].map(
    ([, name = '', help = '', type]): Metric => {
      const samples = [...text.matchAll(new RegExp(`${name}(?:_bucket)?\\{([^}]*)\\}`, 'g'))];
      const labels = new Set(samples.flatMap(([, list]) => [...list!.matchAll(/(\w+)=/g)].map(([, label]) => label!)));
      labels.delete('le');
      return { name, type: type as Metric['type'], labels: [...labels], help };
    },
  );
  const kinds = [...text.matchAll(/\{"(svc_\w+)", "(counter|gauge)", "([^"]+)"/g)].map(
    ({ 1: name = '', 2: type, 3: help = '', index }): Metric => {
      const label = /%s\{(\w+)=%q\}/.exec(text.slice(index))?.[1];
      return { name, type: type as Metric['type'], labels: label ? [label] : [], help };
    },
  );
  const counters = [...text.matchAll(/\{"(svc_\w+)", "([^"]+ [^"]+)", "(\w+)"/g)].map(
    ([, name = '', help = '', label = '']): Metric => ({ name, type: 'counter', labels: [label], help }),
  );
  return [...written, ...kinds, ...counters];
}
