import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const copier = fileURLToPath(new URL('copier.ts', import.meta.url))
const mortal = fileURLToPath(new URL('mortal.ts', import.meta.url))

/** Copies in a process that dies before a step of the disk; its steps where it lived, null where it died. */
export async function stepsOf(how: string, source: string, target: string, dieAt: number): Promise<number | null> {
  const told = `${target}-steps`
  const child = spawn(process.execPath, ['--import', mortal, copier, how, source, target], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, DIE_AT: String(dieAt), STEPS_TO: told },
  })
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== null && code !== 0) throw new Error(`the copy ended with ${code}`)
  return code === null ? null : Number(readFileSync(told, 'utf8'))
}
