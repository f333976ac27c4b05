import fc from 'fast-check'
import { matchExpectedPatterns } from './expected-patterns.ts'

matchExpectedPatterns()

// Properties try the same cases each time; `PITLAKE_SEED` draws others.
fc.configureGlobal({ seed: Number(process.env['PITLAKE_SEED'] ?? 1) })
