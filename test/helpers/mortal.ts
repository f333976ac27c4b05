import { writeFileSync } from 'node:fs'
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { DatabaseSync } from 'node:sqlite'

// Loaded before a program (`node --import`): the process kills itself before the n-th step that changes the disk or the
// ledger, n = DIE_AT. A slow machine and a fast one die at the same place. With COUNT_FROM=commit the first counted
// step is the one that follows the appearing of a journal entry.
const dieAt = Number(process.env['DIE_AT'])
let isCounting = process.env['COUNT_FROM'] !== 'commit'
let steps = 0

const isEntry = (path: unknown): boolean => /\/journal\/\d{10,15}\.json\.gz$/.test(String(path))

function mortal(owner: object, names: readonly string[]): void {
  const methods = owner as Record<string, (...args: unknown[]) => unknown>
  for (const name of names) {
    const act = methods[name]
    if (act === undefined) throw new Error(`no ${name} to die before`)
    methods[name] = function (...args) {
      if (isCounting && ++steps === dieAt) process.kill(process.pid, 'SIGKILL')
      const done = act.apply(this, args)
      if ((name !== 'link' && name !== 'rename') || !isEntry(args[1])) return done
      return (done as Promise<unknown>).then(() => void (isCounting = true))
    }
  }
}

mortal(fs, ['rename', 'link', 'rm', 'writeFile'])
const handle = await fs.open(process.execPath)
mortal(Object.getPrototypeOf(handle) as object, ['sync', 'writeFile', 'appendFile'])
await handle.close()
mortal(DatabaseSync.prototype, ['exec'])
syncBuiltinESMExports()
const told = process.env['STEPS_TO']
if (told !== undefined) process.on('exit', () => writeFileSync(told, String(steps)))
