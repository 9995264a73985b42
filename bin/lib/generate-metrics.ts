// The page of metrics in the reference.
import { cell, code, table } from './markdown.ts';
import { consoleMetrics, edgeMetrics, type Metric } from './metrics-catalog.ts';

/** The page as Markdown. */
export function metricsPage(): string {
  return `# Metrics

All metrics of the product, in the text format of Prometheus. Thresholds and actions are in [Monitoring](../monitoring.md).

## Console

Every console process serves these at \`/metrics\` of its internal listener (\`METRICS_HOST\`, \`METRICS_PORT\`), beside the usual
\`process_*\` and \`nodejs_*\` metrics of Node.js.

${rows(consoleMetrics())}
## Node

The data plane of a node serves these at \`/metrics\` of its unix socket, \`edge.sock\` in the run folder.

${rows(edgeMetrics())}`;
}

const rows = (metrics: readonly Metric[]) =>
  table(
    ['Metric', 'Type', 'Labels', 'Meaning'],
    metrics.map(({ name, type, labels, help }) => [code(name), type, labels.map(code).join(', '), cell(help)]),
  );
