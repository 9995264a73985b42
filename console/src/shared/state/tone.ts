/** green runs, amber watch, red act, blue in progress, grey says nothing of it. */
export type Tone = 'green' | 'amber' | 'red' | 'blue' | 'grey';
