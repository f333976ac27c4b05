import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers/promises'

// Loaded before a program (`node --import`): its waits are over at once, those of ten minutes, too.
const now = async (): Promise<void> => await new Promise((done) => setImmediate(done))
Object.defineProperty(timers, 'setTimeout', { value: now })
syncBuiltinESMExports()
