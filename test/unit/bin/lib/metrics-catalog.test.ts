// What the reference says of metrics, held against the code that has them.
import { execFileSync } from 'node:child_process';
import test from 'ava';
import { consoleMetrics, edgeMetrics } from '../../../../bin/lib/metrics-catalog.ts';
import { root } from '../../../../bin/lib/root.ts';

const find = (metrics: ReturnType<typeof consoleMetrics>, name: string) => metrics.find((each) => each.name === name);

test('type, labels and help are those that the metric is registered with', (t) => {
  t.like(find(consoleMetrics(), 'svc_gateway_request_seconds'), { type: 'histogram', labels: ['procedure'] });
  t.like(find(consoleMetrics(), 'svc_fanout_bytes_total'), { type: 'counter', labels: ['feed'] });
  t.like(find(consoleMetrics(), 'svc_refused_connections_total'), { type: 'counter', labels: ['listener'] });
  t.like(find(consoleMetrics(), 'svc_redis_up'), { type: 'gauge', labels: [] });
  t.like(find(edgeMetrics(), 'svc_edge_stage_seconds'), { type: 'histogram', labels: ['stage'] });
  t.like(find(edgeMetrics(), 'svc_edge_answers_total'), { type: 'counter', labels: ['stage', 'code'] });
  t.like(find(edgeMetrics(), 'svc_edge_compression_active'), { type: 'gauge', labels: ['coding'] });
  t.like(find(edgeMetrics(), 'svc_edge_http2_errors_total'), { type: 'counter', labels: ['kind'] });
});

test('every metric that Go code names is in the catalog', (t) => {
  const found = execFileSync(
    'git',
    ['grep', '-hoE', 'svc_(edge|waf)_[a-z0-9_]+', '--', 'agents/caddy/*.go', ':!*_test.go'],
    {
      cwd: root,
      encoding: 'utf8',
    },
  );
  const known = new Set(edgeMetrics().map(({ name }) => name));
  const named = new Set(
    found
      .trim()
      .split('\n')
      .map((name) => name.replace(/_(bucket|sum|count)$/, '')),
  );
  t.deepEqual(
    [...named].filter((name) => !known.has(name) && !/^svc_edge_v1/.test(name)),
    [],
  );
});
