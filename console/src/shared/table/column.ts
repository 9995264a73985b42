export interface Column {
  key: string;
  label: string;
  /** `number` is set right; `actions` keeps to the end of the row and has no visible heading. */
  kind?: 'text' | 'number' | 'actions';
  /** Left out below 860 px. */
  wideOnly?: boolean;
  /** Takes the room that is left. */
  grow?: boolean;
}
