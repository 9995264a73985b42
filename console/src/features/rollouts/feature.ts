import type { Feature } from '@/app/feature.ts';

export default {} satisfies Feature;
