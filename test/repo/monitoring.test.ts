// Alert rules and dashboards, held to the metrics that the code has. What promtool says of them is a test of integration.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import yaml from 'js-yaml';
import { consoleMetrics, edgeMetrics, type Metric } from '../../bin/lib/metrics-catalog.ts';
import { root } from '../../bin/lib/root.ts';

const folder = join(root, 'k8s/monitoring');
const METRICS = new Map([...consoleMetrics(), ...edgeMetrics()].map((metric) => [metric.name, metric]));
/** Labels that Prometheus adds, and that of buckets. */
const OF_PROMETHEUS = ['instance', 'job', 'le'];
/** Metrics of Prometheus itself. */
const FOREIGN = ['up'];

interface Rules {
  groups: { rules: { alert: string; expr: string; annotations: { runbook?: string } }[] }[];
}
interface Dashboard {
  panels: { title: string; targets: { expr: string; legendFormat: string }[] }[];
  templating: { list: { query: string }[] };
}

const rules = (yaml.safeLoadAll(readFileSync(join(folder, 'alerts.yml'), 'utf8'))[0] as Rules).groups.flatMap(
  ({ rules: all }) => all,
);
const dashboards = readdirSync(join(folder, 'dashboards')).map((name) => ({
  name,
  dashboard: JSON.parse(readFileSync(join(folder, 'dashboards', name), 'utf8')) as Dashboard,
}));
const targets = dashboards.flatMap(({ name, dashboard }) =>
  dashboard.panels.flatMap((panel) => panel.targets.map((target) => ({ name: `${name} ${panel.title}`, ...target }))),
);

function metricOf(name: string): Metric | undefined {
  const metric = METRICS.get(name);
  if (metric) return metric.type === 'histogram' ? undefined : metric;
  const histogram = METRICS.get(name.replace(/_(bucket|sum|count)$/, ''));
  return histogram?.type === 'histogram' ? histogram : undefined;
}

/** Every metric of the expression is one of ours, and has the labels that are asked for. */
function checkExpression(t: ExecutionContext, where: string, expression: string): void {
  const names = [...expression.matchAll(/\b(svc_\w+|up)\b(?:\{([^}]*)\})?/g)];
  t.true(names.length > 0, where);
  for (const [, name = '', matchers = ''] of names) {
    if (FOREIGN.includes(name)) continue;
    const metric = metricOf(name);
    t.truthy(metric, `${where}: no metric ${name}`);
    for (const [, label = ''] of matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)) {
      t.true([...(metric?.labels ?? []), ...OF_PROMETHEUS].includes(label), `${where}: ${name} has no label ${label}`);
    }
  }
  const grouped = [...expression.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, list]) => list!.match(/\w+/g) ?? []);
  const labels = new Set([...OF_PROMETHEUS, ...names.flatMap(([, name]) => metricOf(name!)?.labels ?? [])]);
  for (const label of grouped) t.true(labels.has(label), `${where}: nothing has the label ${label}`);
}

test('alert rules use metrics and labels that exist', (t) => {
  t.true(rules.length >= 15);
  for (const { alert, expr } of rules) checkExpression(t, alert, expr);
});

test('dashboards use metrics and labels that exist', (t) => {
  t.is(dashboards.length, 3);
  for (const { name, expr, legendFormat } of targets) {
    checkExpression(t, name, expr);
    for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) t.regex(expr, new RegExp(`\\b${label}\\b|^svc_`));
  }
  for (const { name, dashboard } of dashboards) {
    for (const { query } of dashboard.templating.list) {
      if (query.startsWith('label_values(')) checkExpression(t, name, query.replace(/^label_values\(|, \w+\)$/g, ''));
    }
  }
});

test('every runbook of an alert exists', (t) => {
  for (const { alert, annotations } of rules) {
    const [file, heading] = annotations.runbook?.split('#') ?? [];
    if (file === undefined) continue;
    const headings = readFileSync(join(root, file), 'utf8').match(/^#+ .*$/gm) ?? [];
    const anchors = headings.map((line) => line.replace(/^#+ /, '').toLowerCase().replaceAll(' ', '-'));
    t.true(anchors.includes(heading!), alert);
  }
});
