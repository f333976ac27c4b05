import { type Disk, realDisk } from '../../src/lake/store/disk.ts'

/**
 * The real disk, before each of whose steps something is done, and waited for: what it throws is what happens instead.
 */
export function stepping(before: (step: number, kind: keyof Disk, path: string) => unknown): Disk {
  let taken = 0
  const steps = Object.entries(realDisk).map(([kind, act]: [string, (...args: never[]) => Promise<unknown>]) => [
    kind,
    async (...args: never[]) => {
      await before(++taken, kind as keyof Disk, String(args.at(kind === 'move' ? 1 : 0)))
      return await act(...args)
    },
  ])
  return Object.fromEntries(steps)
}
