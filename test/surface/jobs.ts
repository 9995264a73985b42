import { eventually } from '../helpers/eventually.ts';
import type { Surface } from '../helpers/surfaces.ts';

const RANGE = { from: '2026-01-02T00:00:00Z', to: '2026-01-02T00:05:00Z' };

export const surface: Surface = {
  async calls(api) {
    const { id } = await api.ok('POST', '/usage/exports', RANGE);
    await eventually(async () => (await api.ok('GET', `/jobs/${id}`)).state === 'done');
    return { paths: { 'jobs.get': { id }, 'jobs.file': { id } }, bodies: { 'usage.startExport': RANGE } };
  },
};
