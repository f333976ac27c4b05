import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadCatalogue } from '../../src/catalog/load.ts'

/** The folder of this program. */
export const root = fileURLToPath(new URL('../..', import.meta.url))

/** A provider on 127.0.0.1 in a process of its own, so that its work is not counted. */
export interface Provider {
  readonly url: string
  /** Sets its clock, in Unix seconds; until then it goes by that of the machine. */
  setClock(now: number): Promise<void>
}

/** Runs the work against a provider, of which some metrics may be objects, or which answers late, and ends it. */
export async function withDailyProvider<T>(
  work: (provider: Provider) => Promise<T>,
  ...kinds: ('objects' | `latency=${number}`)[]
): Promise<T> {
  const child = spawn(process.execPath, [join(root, 'test/bench/provider-process.ts'), ...kinds], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const said = async (): Promise<string> => String((await once(child.stdout, 'data'))[0]).trim()
  try {
    const url = await said()
    return await work({
      url,
      setClock: async (now) => {
        const heard = said()
        child.stdin.write(`${now}\n`)
        await heard
      },
    })
  } finally {
    child.kill()
  }
}

/** Where every point of the provider begins, Unix seconds. */
export const since = Date.UTC(2023, 0, 1) / 1000

/** The configuration of a bench: nothing waits, and every name is one that the provider knows. */
export function benchConfig(): string {
  const named = [...loadCatalogue().endpoints.values()].filter(({ placeholders }) => placeholders.length > 0)
  const paths = Object.fromEntries(named.map(({ path, ask }) => [path, ask]))
  const exchanges = Object.fromEntries(
    [...loadCatalogue().endpoints.values()].flatMap(({ exchanges: own }) => own.map((name) => [name, name])),
  )
  return JSON.stringify({ metrics: { requests_per_minute: 1_000_000, concurrency: 8, paths, exchanges } })
}
