// Alert rules and dashboards for Prometheus and Grafana, as promtool reads them.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import yaml from 'js-yaml';
import { root } from '../../bin/lib/root.ts';

const folder = join(root, 'k8s/monitoring');
const ALERTS = join(folder, 'alerts.yml');

const promtool = (...args: string[]): string =>
  execFileSync('promtool', args, { encoding: 'utf8', stdio: 'pipe', timeout: 60_000 });

test('promtool takes the rules, and they fire as their tests say', (t) => {
  const { groups } = yaml.safeLoadAll(readFileSync(ALERTS, 'utf8'))[0] as { groups: { rules: unknown[] }[] };
  const count = groups.reduce((sum, { rules }) => sum + rules.length, 0);
  t.regex(promtool('check', 'rules', ALERTS), new RegExp(`SUCCESS: ${count} rules found`));
  t.regex(promtool('test', 'rules', join(folder, 'alerts-test.yml')), /SUCCESS/);
});

test('promtool takes the expressions of dashboards', (t) => {
  const expressions = readdirSync(join(folder, 'dashboards')).flatMap((name) => {
    const { panels } = JSON.parse(readFileSync(join(folder, 'dashboards', name), 'utf8')) as {
      panels: { targets: { expr: string }[] }[];
    };
    return panels.flatMap(({ targets }) => targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '5m')));
  });
  t.true(expressions.length > 20);
  const written = mkdtempSync(join(tmpdir(), 'dashboards-'));
  try {
    const file = join(written, 'rules.yml');
    const rules = expressions.map((expr, index) => ({ record: `dashboard:${index}`, expr }));
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboards', rules }] }));
    t.regex(promtool('check', 'rules', file), new RegExp(`SUCCESS: ${expressions.length} rules found`));
  } finally {
    rmSync(written, { recursive: true });
  }
});
