/** A clock in Unix seconds that begins at `start` (null: the real time) and runs `speed` times as fast as `real` (ms). */
export function runningClock(real: () => number, start: number | null, speed: number): () => number {
  const origin = real()
  const first = start ?? origin / 1000
  return () => first + ((real() - origin) / 1000) * speed
}
