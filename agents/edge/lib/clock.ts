/** The clocks of this machine, Unix ms and monotonic ms. */
export interface Clock {
  wall(): number;
  monotonic(): number;
}

export const machineClock: Clock = { wall: () => Date.now(), monotonic: () => performance.now() };
