// A port that a service serves. Services only offer it; the process opens all of them once everything has started, and
// closes them before anything stops.

export interface Address {
  host: string;
  port: number;
}

export interface Listener {
  readonly name: 'web' | 'node-channel';
  /** Starts to accept; answers where. Throws an error that names the address when it cannot. */
  open(): Promise<Address>;
  /** Stops to accept and ends what is open: requests get up to 3 s. */
  close(): Promise<void>;
}

/** Time that open requests get to end once the process stops. */
export const DRAIN_MS = 3_000;
